import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { sessions } from "../../activities/store/schema/index.ts";
import { eventually, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { transcriptOf, callRows } from "../support/stored.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { runsIn } from "../support/in-container.ts";

const agent = useAgent();

const transcript = (id: string) => transcriptOf(agent.database.store, id);

describe("the main loop", () => {
  it("turns a task into working files, and reports the result", async () => {
    const script = scriptedModel()
      .calls("write_file", { path: "hello.sh", content: "echo hello $1\n" }, { says: "I write it." })
      .calls("bash", { command: "sh hello.sh world" })
      .says("It greets the world.");
    const session = await agent.start(script, { task: "Write hello.sh." });
    const closed = await session.result();
    expect(closed).toMatchObject({ status: "completed", steps: 3, result: "It greets the world." });
    expect(closed.usage.calls).toBe(3);
    const rows = await transcript(session.id);
    expect(rows.map((row) => `${row.sequence} ${row.role} ${row.kind}`)).toEqual([
      "2 user task",
      "3 assistant answer",
      "4 tool tool",
      "5 assistant answer",
      "6 tool tool",
      "7 assistant answer",
    ]);
    expect(JSON.stringify(rows[4]?.content)).toContain("hello world");
    const last = session.model.requests.at(-1);
    expect(last?.items.map((item) => item.type)).toEqual(expect.arrayContaining(["call", "result"]));
    const [row] = await agent.database.store.db.select().from(sessions).where(eq(sessions.id, session.id));
    expect(row).toMatchObject({ status: "completed", result: "It greets the world.", container: null });
    await checkSession(agent, session);
  });

  it("keeps results in call order when several calls run at once, however long each takes", async () => {
    const script = scriptedModel()
      .answers(
        call("bash", { command: "sleep 0.6; echo first" }),
        call("bash", { command: "sleep 0.2; echo second" }),
        call("bash", { command: "echo third" }),
      )
      .says("Done.");
    const session = await agent.run(script);
    const results = (await transcript(session.id))
      .filter((row) => row.role === "tool")
      .map((row) => JSON.stringify(row.content));
    expect(results.map((result) => /first|second|third/.exec(result)?.[0])).toEqual([
      "first",
      "second",
      "third",
    ]);
    await checkSession(agent, session);
  });

  it("runs calls one after another if configured", async () => {
    const script = scriptedModel()
      .answers(
        call("bash", { command: "sleep 0.5; echo first >> order.txt" }),
        call("bash", { command: "echo second >> order.txt" }),
        call("read_file", { path: "order.txt" }),
      )
      .says("Done.");
    const session = await agent.run(script, { config: { parallelCalls: false } });
    const read = (await transcript(session.id)).findLast((row) => row.role === "tool");
    expect(JSON.stringify(read?.content)).toMatch(/first.*second/);
  });

  it("reports the model's mistakes to it, and continues", { tags: ["R35", "R36"] }, async () => {
    const script = scriptedModel()
      .answers(
        call("read_file", "{not json"),
        call("make_coffee", { cups: 2 }),
        call("read_file", { path: 7 }),
      )
      .calls("bash", { command: "exit 3" })
      .says("I see.");
    const session = await agent.start(script);
    expect((await session.result()).status).toBe("completed");
    const rows = await callRows(agent.database.store, session.id);
    expect(rows.map((row) => [row.status, row.exitCode])).toEqual([
      ["error", null],
      ["error", null],
      ["error", null],
      ["completed", 3],
    ]);
    expect(JSON.stringify((await transcript(session.id))[3]?.content)).toContain("bash");
    await checkSession(agent, session);
  });
});

it(
  "guidance is coalesced at the next boundary, after all results, once for each id",
  { tags: ["case-19", "case-20"] },
  async () => {
    const script = scriptedModel()
      .answers(call("bash", { command: "sleep 1; echo one" }), call("bash", { command: "echo two" }))
      .says("Understood.");
    const session = await agent.start(script);
    await session.until("llm:tool-result");
    await session.handle.signal("guidance", { id: "a", text: "use tabs" });
    await session.handle.signal("guidance", { id: "b", text: "and no semicolons" });
    await session.handle.signal("guidance", { id: "a", text: "use tabs" });
    const reply = await session.handle.executeUpdate("sendGuidance", {
      args: [{ id: "c", text: "in English" }],
    });
    expect(reply).toEqual({ queued: true, position: 3 });
    await session.result();
    const rows = await transcript(session.id);
    expect(rows.map((row) => row.role)).toEqual(["user", "assistant", "tool", "tool", "user", "assistant"]);
    expect(rows[4]?.content).toEqual([
      { type: "text", text: "[1]: use tabs\n\n[2]: and no semicolons\n\n[3]: in English" },
    ]);
    expect(rows[4]?.meta).toMatchObject({ ids: ["a", "b", "c"] });
    await checkSession(agent, session);
  },
);

describe("stopping", () => {
  it("cancel reaches the provider within a second and keeps the text so far", { tags: ["A5"] }, async () => {
    const script = scriptedModel().answers({ type: "text", text: "Working on it" }, { type: "hang" });
    const session = await agent.start(script);
    await session.until("llm:chunk");
    const cancelled = Date.now();
    await session.handle.cancel();
    await expect(session.result()).rejects.toThrow();
    const closed = Date.now() - cancelled;
    expect((await session.handle.describe()).status.name).toBe("CANCELLED");
    const aborted = session.model.aborts[0]?.abortedAt ?? Infinity;
    expect(aborted - cancelled).toBeLessThan(1_000);
    console.log(`cancel: provider aborted after ${aborted - cancelled} ms, run closed after ${closed} ms`);
    expect(closed).toBeLessThan(4_000); // the benchmark checks the goal of 1 s
    const rows = await transcript(session.id);
    expect(JSON.stringify(rows.at(-1)?.content)).toContain("Working on it [interrupted]");
    const [row] = await agent.database.store.db.select().from(sessions).where(eq(sessions.id, session.id));
    expect(row?.status).toBe("cancelled");
    await checkSession(agent, session);
  });

  it(
    "cancel ends the command's whole process group within half a second, and the container",
    { tags: ["A6", "R9"] },
    async () => {
      const command = `trap '' TERM; (setsid sh -c 'while :; do date >> /workspace/beat; sleep 0.1; done' &); sleep 300`;
      const script = scriptedModel().calls("bash", { command });
      const session = await agent.start(script);
      await session.until("sandbox:created");
      const sandbox = agent.docker.getContainer(`longhaul-${session.id}`);
      await eventually("the command runs", () => runsIn(sandbox, "sleep 300"));
      const cancelled = Date.now();
      await session.handle.cancel();
      const stays = async () => (await runsIn(sandbox, "sleep 300")) || runsIn(sandbox, "beat");
      await eventually("its processes are gone", async () => !(await stays()));
      const ended = Date.now() - cancelled;
      await expect(session.result()).rejects.toThrow();
      console.log(`cancel: processes gone after ${ended} ms, run closed after ${Date.now() - cancelled} ms`);
      expect(ended).toBeLessThan(1_000);
      const results = await callRows(agent.database.store, session.id);
      expect(results.map((row) => row.status)).toEqual(["interrupted"]);
      await expect(sandbox.inspect()).rejects.toThrow();
      await checkSession(agent, session);
    },
  );
});
