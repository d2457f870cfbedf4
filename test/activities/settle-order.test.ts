/** A look at a delegate that has ended: the workflow has not heard of it, and so has not waited for its turn. */
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { delegating } from "../support/delegating.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

it(
  "settles it only after the earlier calls of its step whose files are taken over first",
  { tags: ["D6"] },
  async () => {
    const delegate = (task: string, access: "read" | "write") => call("delegate", { task, access });
    const script = scriptedModel().answers(
      delegate("Look around.", "read"),
      delegate("First.", "write"),
      delegate("Second.", "write"),
      delegate("Look again.", "read"),
    );
    const agent = await startDirectAgent(database, script, { config: delegating() as Partial<RunConfig> });
    await agent.perform("modelStep", { step: 1 });
    const children: string[] = [];
    for (const index of [0, 1, 2, 3]) {
      const opened = await agent.perform("openDelegate", { step: 1, index });
      if (opened.kind === "open") children.push(opened.child);
    }
    const end = (child = "") =>
      database.store.db
        .update(sessions)
        .set({ status: "completed", endedAt: new Date(), result: "It is done." })
        .where(eq(sessions.id, child));
    const look = (index: number) =>
      agent.perform("settleDelegate", { step: 1, index, child: children[index] ?? "" });
    await end(children[2]);
    await end(children[3]);
    expect(await look(2)).toEqual({ kind: "running" });
    expect(await look(3)).toMatchObject({ kind: "settled" });
    await end(children[1]);
    expect(await look(1)).toMatchObject({ kind: "settled" });
    expect(await look(2)).toMatchObject({ kind: "settled" });
  },
);
