/** Tasks that the agent gives to sessions of their own: what comes back, and what ends them. */
import { describe, expect, it } from "vitest";
import { eq } from "drizzle-orm";
import { delegateConfigSchema } from "../../activities/config/delegate-settings.ts";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

const { model: _model, ...settings } = delegateConfigSchema.parse({});
const delegating =
  (more: Partial<typeof settings> = {}) =>
  (config: RunConfig): RunConfig => ({ ...config, delegate: { ...settings, ...more } });
const file = (path: string, content: string) =>
  ({ kind: "file", path, mode: 0o644, bytes: Buffer.from(content) }) as const;
const rowOf = async (id: string) =>
  (await agent.database.store.db.select().from(sessions).where(eq(sessions.id, id)))[0];

describe("a delegate", () => {
  it("works on the files of the call, and its changes come back unless they were changed meanwhile", async () => {
    const script = scriptedModel()
      .calls("write_file", { path: "later.txt", content: "of the parent" })
      .calls("delegate", { task: "Change both files.", access: "write" })
      // The delegate's.
      .calls("bash", {
        command: "cat later.txt && echo new > a.txt && rm b.txt && echo x > c/d.txt || mkdir c",
      })
      .calls("bash", { command: "echo x > c/d.txt; chmod +x c/d.txt" })
      .says("Both are changed.")
      .calls("bash", { command: "cat a.txt c/d.txt later.txt; ls; test -x c/d.txt && echo executable" })
      .says("Done.");
    const workspace = await packWorkspace([file("a.txt", "old"), file("b.txt", "old")]);
    const session = await agent.start(script, { config: delegating(), workspace });
    expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
    const child = `${session.id}.s2c0`;
    expect(await rowOf(child)).toMatchObject({
      parentId: session.id,
      parentCall: "s2c0",
      status: "completed",
    });
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts[1]).toContain("Both are changed.");
    expect(texts[1]).toContain("Files taken over (3): a.txt, b.txt, c/d.txt");
    expect(texts[2]).toBe("new\nx\nof the parenta.txt\nc\nlater.txt\nexecutable");
    expect((await session.until("delegate:ended")).data).toMatchObject({
      childId: child,
      status: "completed",
    });
  });
});
