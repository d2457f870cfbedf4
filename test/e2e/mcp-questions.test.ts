/** Questions of MCP servers to people during a call. */
import { inputRequired } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { z } from "zod";
import type { codingAgent } from "../../workflows/index.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { startMcpServer, type TestMcpServer, withServers } from "../support/mcp-server.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";
import { lastTask, resetTo } from "../support/reset-run.ts";

const agent = useAgent();

const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });

type Add = Parameters<typeof startMcpServer>[0];
type Register = Parameters<Add>[0];

/** A tool that creates an issue once it knows where: its state identifies the call to continue. */
function addCreate(
  server: Register,
  onAnswer: (responses: unknown) => Promise<void> = async () => undefined,
) {
  server.registerTool("create", { description: "Makes an issue." }, async ({ mcpReq }) => {
    const { inputResponses } = mcpReq;
    if (inputResponses === undefined)
      return inputRequired({
        inputRequests: {
          where: inputRequired.elicit({
            message: "Which project?",
            requestedSchema: z.object({ project: z.enum(["alpha", "beta"]), title: z.string() }),
          }),
        },
        requestState: "opaque \u00e9 state",
      });
    await onAnswer(inputResponses);
    return text(`made with ${JSON.stringify(inputResponses)} in ${String(mcpReq.requestState())}`);
  });
}

const callsOf = ({ bodies }: TestMcpServer) =>
  bodies.filter((body) => (body as { method: string }).method === "tools/call") as {
    params: { inputResponses?: unknown; requestState?: string };
  }[];

test("a server's question is asked field by field, and the answers are returned with its state", async () => {
  const server = await startMcpServer((made) => addCreate(made));
  const session = await agent.start(
    scriptedModel()
      .answers(call("github__create", { title: "x" }), call("bash", { command: "echo sibling" }))
      .says("Done."),
    { config: withServers({ github: { url: server.url } }) },
  );
  const asked = await session.until("question:asked");
  expect(asked.data).toMatchObject({
    id: "s1c0q1",
    kind: "mcp",
    text: "github asks: Which project?\n1 of 2: project",
    options: [{ label: "alpha" }, { label: "beta" }],
    default: null,
    expiresAt: null,
  });
  await untilWaiting(agent.database.store, session);
  const status = await session.handle.query<{ phase: string; questions: unknown[] }>("status");
  expect(status).toMatchObject({ phase: "waiting", questions: [{ id: "s1c0q1", kind: "mcp" }] });
  await expect(
    session.handle.executeUpdate("answerQuestion", { args: [{ text: "gamma" }] }),
  ).rejects.toThrow();
  await session.handle.executeUpdate("answerQuestion", { args: [{ option: 2, by: "ann" }] });
  await session.until("question:asked", ({ data }) => data.id === "s1c0q2");
  await eventually("it is open", async () =>
    session.handle.executeUpdate("answerQuestion", { args: [{ text: "A title" }] }).catch(() => false),
  );
  expect(await session.result()).toMatchObject({ status: "completed" });
  const [made, sibling] = await resultTexts(agent.database.store, session.id);
  expect(made).toBe(
    'made with {"where":{"action":"accept","content":{"project":"beta","title":"A title"}}} in opaque é state',
  );
  expect(sibling).toContain("sibling");
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s1c0q1", kind: "mcp", status: "answered", answer: "beta", answeredBy: "ann" },
    { id: "s1c0q2", status: "answered", answer: "A title" },
  ]);
  const sent = callsOf(server);
  expect(sent).toHaveLength(2);
  expect(sent[1]?.params).toMatchObject({ requestState: "opaque é state" });
  const { events } = await session.handle.fetchHistory();
  const summaries = events?.map(({ userMetadata }) =>
    Buffer.from(userMetadata?.summary?.data ?? "").toString(),
  );
  expect(summaries).toContain(JSON.stringify("step 1 · github asks: Which project?"));
  await checkSession(agent, session);
});

test("an answer that does not fit the form is asked for again; an address is never opened", async () => {
  const page = await startMcpServer(() => undefined);
  const server = await startMcpServer((made) => {
    made.registerTool("count", { description: "Counts." }, ({ mcpReq }) => {
      const { inputResponses } = mcpReq;
      if (inputResponses === undefined)
        return inputRequired({
          inputRequests: {
            much: inputRequired.elicit({
              message: "How many?",
              requestedSchema: z.object({ count: z.number().int().min(1) }),
            }),
            page: inputRequired.elicitUrl({ message: "Log in", url: `${page.url}?login` }),
          },
        });
      return text(JSON.stringify(inputResponses));
    });
  });
  const session = await agent.start(scriptedModel().calls("shop__count", {}).says("Done."), {
    config: withServers({ shop: { url: server.url } }),
  });
  await answerWhenAsked(session, "s1c0q1", { text: "many" });
  const login = await answerWhenAsked(session, "s1c0q2", { option: 1 });
  expect(login.text).toContain(`\n${page.url}?login\n`);
  const again = await answerWhenAsked(session, "s1c0q3", { text: "3" });
  expect(again.text).toMatch(/^many is not accepted: .*\nshop asks: How many\?/);
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect(await resultTexts(agent.database.store, session.id)).toEqual([
    '{"much":{"action":"accept","content":{"count":3}},"page":{"action":"accept"}}',
  ]);
  expect(page.bodies).toEqual([]);
});

test("declined, a message instead, unattended, timed out: the server and the model are informed", async () => {
  const server = await startMcpServer((made) => {
    addCreate(made);
    made.registerTool("insist", { description: "Asks forever." }, () =>
      inputRequired({
        inputRequests: { sure: inputRequired.elicit({ message: "Sure?", requestedSchema: z.object({}) }) },
      }),
    );
  });
  const script = scriptedModel()
    .calls("github__create", {})
    .calls("github__create", {})
    .calls("github__insist", {})
    .says("Done.");
  const session = await agent.start(script, { config: withServers({ github: { url: server.url } }) });
  await answerWhenAsked(session, "s1c0q1", { action: "decline" });
  await session.until("question:asked", ({ data }) => data.id === "s2c0q1");
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("guidance", { id: "m1", text: "leave it" });
  await answerWhenAsked(session, "s3c0q1", { action: "decline" });
  expect(await session.result()).toMatchObject({ status: "completed" });
  const [declined, withdrawn, insisted] = await resultTexts(agent.database.store, session.id);
  expect(declined).toMatch(
    /^\[github asks: Which project\?.*\nThe person did not want to answer.*not consent\.\]\nmade with \{"where":\{"action":"decline"\}\}/s,
  );
  expect(withdrawn).toMatch(/^\[.*\nNo one answered.*\]\nmade with \{"where":\{"action":"cancel"\}\}/s);
  expect(insisted).toContain("The server then asked again; that question was not passed on to anyone.");
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s1c0q1", status: "declined" },
    { id: "s2c0q1", status: "withdrawn" },
    { id: "s3c0q1", status: "declined" },
  ]);

  for (const mode of ["default", "deny"] as const) {
    const questions = { mode, parkAfter: 600_000, maxOpen: 8 };
    const alone = await agent.start(scriptedModel().calls("github__create", {}).says("Done."), {
      config: withServers({ github: { url: server.url } }, { questions }),
    });
    expect(await alone.result()).toMatchObject({ status: "completed" });
    const [result] = await resultTexts(agent.database.store, alone.id);
    expect(result).toMatch(/No one answered.*made with \{"where":\{"action":"cancel"\}\}/s);
  }
});

test("an older server that asks during a call learns at once that there is no answer", async () => {
  const server = await startMcpServer((made) => {
    made.registerTool("ask", { description: "Asks." }, async ({ mcpReq }) => {
      const { action } = await mcpReq.elicitInput({
        message: "Which?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } } },
      });
      return text(`the person: ${action}`);
    });
  }, "old");
  const session = await agent.start(scriptedModel().calls("old__ask", {}).says("Done."), {
    config: withServers({ old: { url: server.url } }),
  });
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect((await resultTexts(agent.database.store, session.id))[0]).toMatch(
    /^\[While this call was open, the server tried to ask a person something\..*\]\nthe person: cancel$/,
  );
});

test("no worker is needed while a server waits for a person, and a continued call is sent once", async () => {
  const hung = Promise.withResolvers<never>();
  let continued = 0;
  const server = await startMcpServer((made) => {
    addCreate(made, async (responses) => {
      continued += 1;
      if (JSON.stringify(responses).includes("alpha")) await hung.promise;
    });
  });
  const session = await startKillableSession(
    agent.database,
    scriptedModel().calls("github__create", {}).calls("github__create", {}).says("Done."),
    { config: withServers({ github: { url: server.url } }) },
  );
  const isOpen = async (id: string) =>
    (await questionRows(agent.database.store, session)).some((row) => row.id === id && row.status === "open");
  const asked = (id: string) => eventually(`${id} is asked`, () => isOpen(id), 120_000);
  const first = await session.startWorker();
  await asked("s1c0q1");
  await first.kill();
  await session.handle.signal("answer", { question: "s1c0q1", text: "beta" });
  const second = await session.startWorker();
  await asked("s1c0q2");
  // Killed between the answer and the call that returns it, or right after: it is sent only once nevertheless.
  await session.handle.signal("answer", { question: "s1c0q2", text: "T" });
  await asked("s2c0q1");
  expect(continued).toBe(1);
  await session.handle.signal("answer", { question: "s2c0q1", text: "alpha" });
  await asked("s2c0q2");
  await session.handle.signal("answer", { question: "s2c0q2", text: "T" });
  await eventually("the server has the answer", () => continued === 2);
  await second.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 3 });
  expect(continued).toBe(2);
  const [made, unknown] = await resultTexts(agent.database.store, session.id);
  expect(made).toContain('"project":"beta","title":"T"}}} in opaque é state');
  expect(unknown).toMatch(/It may have happened\.\nSent to the server github: create/);
  const rows = await callRows(agent.database.store, session.id);
  expect(rows.map(({ status }) => status)).toEqual(["completed", "unknown"]);
  await checkSession(session.services, session, { kills: 2 });
});

test("a server's question is open again after a reset to the wait, and its call continues", async () => {
  const server = await startMcpServer((made) => addCreate(made));
  const session = await agent.start(scriptedModel().calls("github__create", {}).says("Done."), {
    config: withServers({ github: { url: server.url } }),
  });
  await session.until("question:asked");
  await untilWaiting(agent.database.store, session);
  const runId = await resetTo(agent.client, session.id, lastTask);
  const handle = agent.client.workflow.getHandle<typeof codingAgent>(session.id, runId);
  const again = { ...session, handle };
  await answerWhenAsked(again, "s1c0q1", { text: "beta" });
  await answerWhenAsked(again, "s1c0q2", { text: "T" });
  expect(await handle.result()).toMatchObject({ result: "Done." });
  expect((await resultTexts(agent.database.store, session.id))[0]).toContain('"project":"beta"');
  expect(callsOf(server)).toHaveLength(2);
  expect((await questionRows(agent.database.store, session)).at(-1)).toMatchObject({ status: "answered" });
  await checkSession(agent, session);
});

type Asking = Pick<RunningSession, "until" | "handle">;

async function answerWhenAsked(session: Asking, id: string, answer: object): Promise<{ text: string }> {
  const asked = await session.until("question:asked", ({ data }) => data.id === id);
  await eventually(`${id} is answered`, () =>
    session.handle
      .executeUpdate("answerQuestion", { args: [{ question: id, ...answer }] })
      .then(() => true)
      .catch(() => false),
  );
  return asked.data;
}
