/** The tool `wait`, on the real server, database and engine. */
import { describe, expect, it } from "vitest";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { noticesOf, resultTexts } from "../support/stored.ts";
import { wakeUpdate } from "../../workflows/messages.ts";

const agent = useAgent();

const inBackground = (command: string) => call("bash", { command, background: true });
const wait = (args: object) => call("wait", { reason: "the deploy", ...args });
const results = (session: RunningSession) => resultTexts(agent.database.store, session.id);
const waitRows = async (session: RunningSession) =>
  (
    await agent.database.store.pool.query<{ kind: string; how: string | null; ended_at: Date | null }>(
      "select kind, how, ended_at from waits where session_id = $1 order by step",
      [session.id],
    )
  ).rows;

describe("a wait", () => {
  it("for a time begins after the other calls, ends with it, and is the only one of a step", async () => {
    const script = scriptedModel()
      .answers(wait({ seconds: 1 }), call("bash", { command: "date +%s%3N > ran" }), wait({ seconds: 5 }))
      .says("Done.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ result: "Done." });
    const [first, , second] = await results(session);
    expect(first).toMatch(/^Waited 5(\.\d)? s: the time is over\. At least 5 s are waited\.$/);
    expect(second).toMatch(/^Not waited: a step has one wait/);
    const events = await session.events();
    const types = events.map(({ type }) => type);
    expect(types.indexOf("wait:started")).toBeGreaterThan(types.indexOf("llm:tool-result"));
    expect(events.filter(({ type }) => type === "wait:ended").map(({ data }) => data)).toMatchObject([
      { how: "time" },
    ]);
  });

  it("ends at a message, which is read in the next step", async () => {
    const session = await agent.start(
      scriptedModel()
        .answers(wait({ seconds: 3_600 }))
        .says("Read it."),
    );
    await session.until("wait:started");
    await session.handle.signal("guidance", { text: "Stop waiting." });
    expect(await session.result()).toMatchObject({ result: "Read it." });
    expect(await results(session)).toEqual([
      expect.stringMatching(/^Waited .* of 1 h: a person wrote a message, which follows\.$/),
    ]);
    expect(JSON.stringify(session.model.requests.at(-1))).toContain("Stop waiting.");
    expect(await waitRows(session)).toMatchObject([{ kind: "time", how: "message" }]);
  });

  it("ends without a message when a person wakes it, and only then", async () => {
    const session = await agent.start(
      scriptedModel()
        .answers(wait({ until: new Date(Date.now() + 3_600_000).toISOString() }))
        .says("Woken."),
    );
    // The event is stored a moment before the run rests.
    await expect
      .poll(async () => (await session.handle.query<{ status: string }>("status")).status, {
        timeout: 30_000,
      })
      .toBe("waiting");
    await session.handle.executeUpdate(wakeUpdate);
    expect(await session.result()).toMatchObject({ result: "Woken." });
    expect((await results(session))[0]).toMatch(/: a person ended the wait\.$/);
    await expect(session.handle.executeUpdate(wakeUpdate)).rejects.toThrow();
  });

  it("that is interrupted is the call's result, and the session goes on", async () => {
    const session = await agent.start(
      scriptedModel()
        .answers(wait({ seconds: 3_600 }))
        .says("Next."),
    );
    await session.until("wait:started");
    await session.handle.signal("interrupt");
    expect(await session.result()).toMatchObject({ result: "Next." });
    expect((await results(session))[0]).toMatch(/^Waited .* of 1 h: a person stopped it\.$/);
  });

  it("that is cancelled ends with the run, at once, and its row is closed", async () => {
    const session = await agent.start(scriptedModel().answers(wait({ seconds: 3_600 })));
    await session.until("wait:started");
    const began = performance.now();
    await session.handle.cancel();
    await session.result().catch(() => undefined);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(await waitRows(session)).toMatchObject([{ how: "cancelled" }]);
    expect((await waitRows(session))[0]?.ended_at).not.toBeNull();
  });

  it("for a command ends with it, and tells its end once", async () => {
    const script = scriptedModel()
      .answers(inBackground("sleep 2; echo broken; exit 7"))
      .answers(wait({ process: "s1c0", seconds: 600 }))
      .says("Done.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ result: "Done." });
    expect((await results(session))[1]).toMatch(
      /^Waited .* of 10 min: s1c0 \(sleep 2; echo broken; exit 7\) ended with exit code 7 after \d+(\.\d)? s\. Last lines:\nbroken/,
    );
    expect(await noticesOf(agent.database.store, session.id)).toEqual([]);
    expect((await session.events()).filter(({ type }) => type === "process:ended")).toHaveLength(1);
  });

  it("for a command keeps its sandbox, and another's end meanwhile is told once, after it", async () => {
    const script = scriptedModel()
      .answers(inBackground("sleep 1; exit 3"), inBackground("sleep 4; exit 7"))
      .answers(wait({ process: "s1c1", seconds: 600 }))
      .answers(call("bash", { command: "true" }))
      .says("Done.");
    const session = await agent.start(script, {
      config: { questions: { mode: "ask", maxOpen: 5, parkAfter: 500 } },
    });
    await session.result();
    expect((await results(session))[2]).toMatch(/: s1c1 \(sleep 4; exit 7\) ended with exit code 7/);
    expect(await noticesOf(agent.database.store, session.id)).toEqual([
      expect.stringMatching(/s1c0 \(sleep 1; exit 3\) ended with exit code 3/),
    ]);
    expect((await session.events()).filter(({ type }) => type === "sandbox:parked")).toEqual([]);
  });

  it("ends before the deadline, which ends the run in order", async () => {
    const script = scriptedModel()
      .answers(wait({ seconds: 3_600 }))
      .says("Where things stand.");
    const session = await agent.start(script, { config: { limits: { deadline: 15_000, wrapUp: 5_000 } } });
    expect(await session.result()).toMatchObject({ status: "max_steps", limit: "deadline" });
    expect((await results(session))[0]).toMatch(/^Waited .* of 1 h: the run's deadline is near\.$/);
    expect(await waitRows(session)).toMatchObject([{ how: "deadline", ended_at: expect.any(Date) as Date }]);
  });

  it("for a command that has ended already returns at once", async () => {
    const script = scriptedModel()
      .answers(inBackground("true"), wait({ process: ["s1c0"], seconds: 600 }))
      .says("Done.");
    const session = await agent.start(script);
    await session.result();
    expect((await results(session))[1]).toMatch(/s1c0 \(true\) ended with exit code 0/);
  });
});

it("says what is valid instead of waiting for what cannot be", async () => {
  const wrong: object[] = [
    { until: "2020-01-01T00:00:00Z" },
    { until: "2026-01-01T00:00" },
    { until: new Date(Date.now() + 365 * 86_400_000).toISOString() },
    { seconds: 0 },
    { seconds: -5 },
    { seconds: 1e9 },
    { seconds: 10, process: "s9c9" },
    { question: "s9c9" },
    {},
  ];
  const script = scriptedModel();
  for (const args of wrong) script.answers(wait(args));
  const session = await agent.start(script.says("Done."));
  expect(await session.result()).toMatchObject({ result: "Done." });
  const texts = await results(session);
  expect(texts).toHaveLength(wrong.length);
  for (const text of texts) expect(text).toMatch(/^Not waited/);
});

it("is refused after as many waits as a run may have, and the run goes on", async () => {
  const script = scriptedModel()
    .answers(wait({ seconds: 1 }))
    .answers(wait({ seconds: 1 }))
    .says("Done.");
  const session = await agent.start(script, { config: { limits: { maxWaits: 1 } } });
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect((await results(session))[1]).toMatch(/limits\.maxWaits/);
});

it("parks the sandbox of a long wait, whose commands are named before and after", async () => {
  const script = scriptedModel()
    .answers(inBackground("sleep 600"))
    .answers(wait({ seconds: 3_600 }))
    .answers(wait({ seconds: 3_600 }))
    .says("Done.")
    .says("Done again.");
  const session = await agent.start(script, {
    config: { questions: { mode: "ask", maxOpen: 5, parkAfter: 1_000 } },
  });
  await session.until("sandbox:parked");
  await session.handle.executeUpdate(wakeUpdate);
  await session.result();
  const texts = await results(session);
  expect(texts[1]).toMatch(/^Not waited yet: .*s1c0/);
  expect(texts[2]).toMatch(/a person ended the wait/);
  expect((await noticesOf(agent.database.store, session.id)).join("\n")).toContain("s1c0");
});
