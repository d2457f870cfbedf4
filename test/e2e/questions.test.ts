/** Questions to people: the run itself waits, and the outcome is the result of the call that asked. */
import { createServer } from "node:http";
import { expect, it } from "vitest";
import { findSessionRow } from "../../activities/store/reading.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices } from "../support/client-services.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { useAgent } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { lastTask, resetTo } from "../support/reset-run.ts";
import { listen } from "../support/listen.ts";

const agent = useAgent();

const WHICH = { question: "npm or pnpm?", options: ["npm", "pnpm"] };

it(
  "runs the sibling calls at once, waits for the answer, and stores all results in call order",
  { tags: ["Q5"] },
  async () => {
    const script = scriptedModel()
      .answers(
        call("bash", { command: "echo before" }),
        call("ask_user", WHICH),
        call("bash", { command: "echo after" }),
      )
      .says("Done.");
    const session = await agent.start(script);
    const asked = await session.until("question:asked");
    expect(asked.data).toMatchObject({
      id: "s1c1",
      kind: "ask",
      text: "npm or pnpm?",
      options: [{ label: "npm" }, { label: "pnpm" }],
      default: null,
      expiresAt: null,
    });
    await untilWaiting(agent.database.store, session);
    const results = await session.dataOf("llm:tool-result");
    expect(results.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([0, 2]);
    const status = await session.handle.query<{ status: string; phase: string; questions: unknown[] }>(
      "status",
    );
    expect(status).toMatchObject({
      status: "waiting",
      phase: "waiting",
      questions: [{ id: "s1c1", kind: "ask", text: "npm or pnpm?" }],
    });

    // The first valid answer counts; later ones are refused.
    await expect(
      session.handle.executeUpdate("answerQuestion", { args: [{ question: "s1c1", text: "yarn" }] }),
    ).rejects.toThrow();
    expect(
      await session.handle.executeUpdate("answerQuestion", { args: [{ option: 2, by: "ann" }] }),
    ).toEqual({
      question: "s1c1",
    });
    await session.handle.signal("answer", "npm");
    expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
    expect(await resultTexts(agent.database.store, session.id)).toEqual([
      expect.stringContaining("before"),
      "The person answered: pnpm",
      expect.stringContaining("after"),
    ]);
    expect(await questionRows(agent.database.store, session)).toMatchObject([
      { id: "s1c1", status: "answered", answer: "pnpm", answeredBy: "ann" },
    ]);
    expect(session.model.requests).toHaveLength(2);
    await checkSession(agent, session);
  },
);

it(
  "uses a default only after the model's own timeout, and reports that no one answered",
  { tags: ["Q3", "Q4"] },
  async () => {
    const script = scriptedModel()
      .answers(
        call("ask_user", { question: "Which registry?", default: "npm", timeout_seconds: 1 }),
        call("ask_user", { question: "Which port?", default: "80" }),
      )
      .says("Done.");
    const session = await agent.start(script);
    await session.until("question:expired");
    await untilWaiting(agent.database.store, session);
    expect(await questionRows(agent.database.store, session)).toMatchObject([
      { id: "s1c0", status: "defaulted", answer: "npm" },
      { id: "s1c1", status: "open" },
    ]);
    await expect(
      session.handle.executeUpdate("answerQuestion", { args: [{ question: "s1c0", text: "yarn" }] }),
    ).rejects.toThrow();
    const { events } = await session.handle.fetchHistory();
    expect(events?.filter((event) => event.timerStartedEventAttributes)).toHaveLength(1);
    await session.handle.signal("answer", "8080");
    await session.result();
    const [registry, port] = await resultTexts(agent.database.store, session.id);
    expect(registry).toMatch(/^No one answered in time, so your default is used: npm/);
    expect(port).toBe("The person answered: 8080");
  },
);

it("is not asked in an unattended session: the model's own default, else nothing", async () => {
  const script = scriptedModel()
    .answers(call("ask_user", { ...WHICH, default: "pnpm" }), call("ask_user", WHICH))
    .says("Done.");
  const session = await agent.start(script, {
    config: { questions: { mode: "default", parkAfter: 1_000, maxOpen: 8 } },
  });
  expect(await session.result()).toMatchObject({ result: "Done." });
  const [taken, refused] = await resultTexts(agent.database.store, session.id);
  expect(taken).toMatch(/^No one is asked in this session, so your default is used: pnpm\n/);
  expect(refused).toMatch(/^Not answered: no one is asked in this session\./);
  expect((await questionRows(agent.database.store, session)).map(({ status }) => status)).toEqual([
    "defaulted",
    "withdrawn",
  ]);
});

it("is open again, in the new line, after a reset to the wait", async () => {
  const script = scriptedModel()
    .answers(call("bash", { command: "echo sibling" }), call("ask_user", WHICH))
    .says("Done.");
  const session = await agent.start(script);
  await untilWaiting(agent.database.store, session);
  const runId = await resetTo(agent.client, session.id, lastTask);
  const again = agent.client.workflow.getHandle(session.id, runId);
  await again.executeUpdate("answerQuestion", { args: [{ option: 1 }] });
  expect(await again.result()).toMatchObject({ result: "Done." });
  const rows = await questionRows(agent.database.store, session);
  expect(rows.at(-1)).toMatchObject({ id: "s1c1", status: "answered", answer: "npm" });
  expect(rows.filter(({ status }) => status === "open")).toEqual([]);
  await checkSession(agent, session);
});

it(
  "withdraws a question for a message, which follows its result; an invalid call asks nothing",
  { tags: ["Q7"] },
  async () => {
    const script = scriptedModel()
      .answers(call("ask_user", { question: "Which?", options: ["one"] }), call("ask_user", WHICH))
      .says("I use npm.");
    const session = await agent.start(script);
    await untilWaiting(agent.database.store, session);
    await session.handle.signal("guidance", { id: "m1", text: "stop asking, use npm" });
    expect(await session.result()).toMatchObject({ result: "I use npm." });
    const [bad, withdrawn] = await resultTexts(agent.database.store, session.id);
    expect(bad).toMatch(/^The arguments of ask_user are wrong; the call was not made\./);
    expect(withdrawn).toBe("Not answered: the person wrote a message instead, which follows.");
    expect(await questionRows(agent.database.store, session)).toMatchObject([
      { id: "s1c1", status: "withdrawn", answer: null },
    ]);
    const last = session.model.requests.at(-1)?.items.slice(-2);
    expect(last).toMatchObject([{ type: "result" }, { type: "message", role: "user" }]);
  },
);

it("withdraws open questions when the step is interrupted or the run cancelled", async () => {
  const script = scriptedModel()
    .answers(call("ask_user", { question: "First?" }))
    .answers(call("ask_user", { question: "Second?" }));
  const session = await agent.start(script);
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("interrupt");
  await session.until("question:asked", ({ data }) => data.text === "Second?");
  await untilWaiting(agent.database.store, session);
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s1c0", status: "withdrawn" },
    { id: "s2c0", status: "withdrawn" },
  ]);
  expect((await findSessionRow(agent.database.store.db, session.id))?.status).toBe("cancelled");
  await checkSession(agent, session);
});

it(
  "keeps no sandbox during a long wait; the next has its files, and the model a notice",
  { tags: ["Q10"] },
  async () => {
    const script = scriptedModel()
      .answers(
        call("bash", { command: "echo kept > file.txt; echo gone > /tmp/file.txt" }),
        call("bash", { command: "sleep 1000", background: true }),
      )
      .calls("ask_user", { question: "Which?" })
      .calls("bash", { command: "cat file.txt /tmp/file.txt" })
      .answers(call("ask_user", { question: "Sure?" }), call("bash", { command: "cat file.txt" }))
      .says("Done.");
    const session = await agent.start(script, {
      config: {
        questions: { mode: "ask", parkAfter: 200, maxOpen: 8 },
        permissions: [{ tool: "bash", match: "cat file.txt", action: "ask" }],
      },
    });
    await session.until("sandbox:parked");
    const containers = await agent.docker.listContainers({ all: true });
    expect(containers.some(({ Names }) => Names.some((name) => name.includes(session.id)))).toBe(false);
    const { events } = await session.handle.fetchHistory();
    expect(events?.filter((event) => event.timerStartedEventAttributes)).toEqual([]);
    await session.handle.signal("answer", "The first.");
    await session.until("question:asked", ({ data }) => data.kind === "approval");
    await session.until("sandbox:parked", ({ step }) => step === 4);
    await session.handle.signal("answer", { question: "s4c1", action: "allow" });
    await session.until("llm:tool-result", ({ step }) => step === 4);
    await session.handle.signal("answer", { question: "s4c0", text: "Yes." });
    expect(await session.result()).toMatchObject({ result: "Done." });
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts[3]).toMatch(/^kept\ncat: \/tmp\/file.txt: No such file/);
    expect(texts[5]).toBe("kept");
    const lastItem = JSON.stringify(session.model.requests[2]?.items.at(-1));
    expect(lastItem).toContain("Background commands that were running: s1c1.");
    await checkSession(agent, session);
  },
);

/** A receiver of notices, which refuses the first. */
async function noticeBoard(): Promise<{ readonly url: string; readonly notices: Record<string, unknown>[] }> {
  const notices: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      notices.push({ ...(JSON.parse(body) as object), key: request.headers["idempotency-key"] });
      response.writeHead(notices.length === 1 ? 503 : 204).end();
    });
  });
  return { url: `http://127.0.0.1:${await listen(server)}/`, notices };
}

it(
  "survives its workers: the next worker uses an answer given while there is none, once",
  { tags: ["Q1"] },
  async () => {
    const { url, notices } = await noticeBoard();
    const session = await startKillableSession(
      agent.database,
      scriptedModel().calls("ask_user", WHICH).says("Done."),
      { environment: { LONGHAUL_NOTIFY_URL: url } },
    );
    const { id } = session;
    const worker = await session.startWorker();
    await untilWaiting(agent.database.store, session);
    await eventually("the notice is sent again", () => notices.length === 2);
    await worker.kill();
    expect(await sendAnswer(clientServices(agent), id, { option: 2 })).toEqual({
      session: id,
      question: "s1c0",
      acknowledged: false,
    });
    await session.startWorker();
    expect(await session.handle.result()).toMatchObject({ result: "Done." });
    expect(await resultTexts(agent.database.store, id)).toEqual(["The person answered: pnpm"]);
    expect(await questionRows(agent.database.store, session)).toMatchObject([
      { id: "s1c0", status: "answered", answer: "pnpm" },
    ]);
    expect(session.model.requests).toHaveLength(2);
    const asked = {
      id: `${id}:question:asked:s1c0:1`,
      event: "question:asked",
      session: id,
      question: "s1c0",
      kind: "ask",
      status: null,
      command: `longhaul answer ${id} s1c0`,
      key: `${id}:question:asked:s1c0:1`,
    };
    expect(notices.slice(0, 2)).toEqual([asked, asked]);
    expect(notices.at(-1)).toMatchObject({ event: "session:ended", session: id, status: "completed" });
    await checkSession(session.services, session, { kills: 1 });
  },
);
