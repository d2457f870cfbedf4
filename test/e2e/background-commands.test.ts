/** Commands in the background: their ends are told to the model exactly once, and what runs at its last answer is told once. */
import { describe, expect, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { noticesOf } from "../support/stored.ts";

const agent = useAgent();

const inBackground = (command: string) => call("bash", { command, background: true });
/** Returns once the file is there, and the supervisor has seen its writer's end. */
const until = (file: string) =>
  call("bash", { command: `until [ -e ${file} ]; do sleep 0.05; done; sleep 0.3` });
const ENDED = "[Commands in the background:\n";

describe("a command in the background", () => {
  it("that ends is told at the next step boundary, once, with its exit code and last lines", async () => {
    const script = scriptedModel()
      .answers(inBackground("echo one; echo two; touch end; exit 3"))
      .answers(until("end"))
      .answers(call("bash", { command: "true" }))
      .says("Done.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
    const notices = await noticesOf(agent.database.store, session.id);
    expect(notices).toEqual([
      expect.stringMatching(
        /^\[Commands in the background:\ns1c0 \(echo one; echo two; touch end; exit 3\) ended with exit code 3 after \d+ ms\. Last lines:\none\ntwo\n\(bash_output id="s1c0" has all\)\]$/,
      ),
    ]);
    const ended = (await session.events()).filter(({ type }) => type === "process:ended");
    expect(ended.map(({ data }) => data)).toMatchObject([{ id: "s1c0", exitCode: 3, lines: "one\ntwo" }]);
  });

  it("whose end the model has read by itself is not told again", async () => {
    const script = scriptedModel()
      .answers(inBackground("until [ -e go ]; do sleep 0.05; done; touch end"))
      .answers(call("bash", { command: "touch go" }), until("end"), call("bash_output", { id: "s1c0" }))
      .says("Done.");
    const session = await agent.start(script, { config: { parallelCalls: false } });
    expect(await session.result()).toMatchObject({ status: "completed" });
    expect(await noticesOf(agent.database.store, session.id)).toEqual([]);
    const ended = (await session.events()).filter(({ type }) => type === "process:ended");
    expect(ended.map(({ data }) => data)).toMatchObject([{ id: "s1c0" }]);
  });

  it("that runs at the last answer is told once, and the next last answer counts", async () => {
    const script = scriptedModel()
      .answers(inBackground("sleep 600"))
      .says("Started it.")
      .says("It may end with the session.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ result: "It may end with the session.", steps: 3 });
    const notices = await noticesOf(agent.database.store, session.id);
    expect(notices).toEqual([
      "[s1c0 (sleep 600) still runs and ends with this session. If you need the outcome, wait for it; your next final answer counts, whatever runs.]",
    ]);
  });

  it("that ended before the last answer is told before the session ends", async () => {
    const script = scriptedModel()
      .answers(inBackground("sleep 1; exit 4"))
      .answers({ type: "wait", ms: 2_000 }, { type: "text", text: "Wrong guess." })
      .says("It failed.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ result: "It failed." });
    expect(await noticesOf(agent.database.store, session.id)).toEqual([
      expect.stringMatching(/s1c0 \(sleep 1; exit 4\) ended with exit code 4 after 1/),
    ]);
  });

  it("is told as gone by the run that resumes the session", async () => {
    const script = scriptedModel()
      .answers(inBackground("sleep 600"))
      .says("Started it.")
      .says("Done.")
      .says("Again.");
    const session = await agent.start(script);
    await session.result();
    await (await session.resume("Go on.", "more")).result();
    const notices = await noticesOf(agent.database.store, session.id);
    expect(notices.at(-1)).toBe(
      `${ENDED}s1c0 (sleep 600) is gone with its sandbox, and how far it came is not known.]`,
    );
  });
});

it("thirty commands that ended between two boundaries are one note, bounded, with their ids", async () => {
  const starts = Array.from({ length: 10 }, () =>
    inBackground("head -c 1000000 /dev/zero | tr '\\0' x; echo"),
  );
  const script = scriptedModel()
    .answers(...starts)
    .answers(...starts)
    .answers(...starts)
    .answers(call("bash", { command: "sleep 2" }))
    .says("Done.");
  const session = await agent.start(script);
  await session.result();
  const notices = await noticesOf(agent.database.store, session.id);
  const told = notices.join("\n").match(/s\dc\d(?= \()/g) ?? [];
  expect(new Set(told).size).toBe(30);
  expect(told.length).toBe(30);
  for (const notice of notices) expect(notice.length).toBeLessThan(10_000);
});
