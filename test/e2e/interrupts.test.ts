/** A person's stop, at early moments of a step, and twice. */
import { describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { DOT_PNG } from "../support/images.ts";
import { eventually } from "../support/eventually.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { answersOf, callRows, transcriptOf } from "../support/stored.ts";
import { useAgent } from "../support/agent-harness.ts";
import { untilCalls } from "../support/waits.ts";
import { wordsAsked, timesAsked } from "../support/scripted-summaries.ts";

const agent = useAgent();

const silent = () => scriptedModel().answers().with({ beforeHeaders: "hang" });

describe("before the first token", () => {
  it(
    "a cancel ends the run and leaves no empty answer; the session can be resumed",
    { tags: ["case-23"] },
    async () => {
      const session = await agent.start(silent().says("Here I am again."));
      await eventually("the request", () => session.model.requests.length === 1, 120_000);
      await session.handle.cancel();
      await expect(session.result()).rejects.toThrow();
      expect((await session.handle.describe()).status.name).toBe("CANCELLED");
      expect(await answersOf(agent.database.store, session.id)).toEqual([]);
      await checkSession(agent, session);
      const again = await session.resume("go on", "again");
      expect(await again.result()).toMatchObject({ status: "completed", result: "Here I am again." });
    },
  );

  it(
    "an interrupt continues with its message and picture, and leaves no empty answer",
    { tags: ["case-23"] },
    async () => {
      const session = await agent.start(silent().says("Something else then."));
      await eventually("the request", () => session.model.requests.length === 1, 120_000);
      // As typed in the Web UI. The step hangs, so no delivery announces it.
      await session.handle.signal("guidance", "use tabs");
      const { data } = await session.until("message:queued");
      expect(data).toMatchObject({ position: 1, excerpt: "use tabs" });
      const picture = { type: "image", image: DOT_PNG.toString("base64"), mediaType: "image/png" };
      const stop = { id: "stop", text: "do something else", parts: [picture] };
      await session.handle.signal("interrupt", stop);
      expect(await session.result()).toMatchObject({ status: "completed" });
      const queued = await session.dataOf("message:queued");
      expect(queued.map(({ id }) => id)).toEqual([data.id, "stop"]);
      const said = (await transcriptOf(agent.database.store, session.id)).filter(
        ({ kind }) => kind === "guidance",
      );
      expect(JSON.stringify(said.map(({ content }) => content))).toMatch(
        /use tabs.*do something else.*@blob:/,
      );
      const answers = await answersOf(agent.database.store, session.id);
      expect(JSON.stringify(answers.map((row) => row.content))).not.toContain("[interrupted]");
      expect(answers).toHaveLength(1);
      expect(wordsAsked(session.model)).toContain("do something else");
      await checkSession(agent, session);
    },
  );
});

it(
  "two interrupts at once end three calls, each with a result that says so, and deliver both",
  { tags: ["case-23"] },
  async () => {
    const sleep = call("bash", { command: "echo begun; sleep 60" });
    const session = await agent.start(scriptedModel().answers(sleep, sleep, sleep).says("Both are clear."));
    await untilCalls(agent.database.store, session.id, "running", 3);
    await Promise.all([
      session.handle.signal("interrupt", { id: "one", text: "not that" }),
      session.handle.signal("interrupt", { id: "two", text: "nor that" }),
    ]);
    expect(await session.result()).toMatchObject({ status: "completed", steps: 2 });
    const calls = await callRows(agent.database.store, session.id);
    expect(calls.map((row) => row.status)).toEqual(["interrupted", "interrupted", "interrupted"]);
    const last = session.model.requests.at(-1);
    const items = last?.items ?? [];
    expect(items.filter((item) => item.type === "result")).toHaveLength(3);
    expect(timesAsked(session.model, ["not that", "nor that"])).toEqual([1, 1]);
    await checkSession(agent, session);
  },
);
