/** Terminate, from the Web UI: no code of ours runs. What is left is cleaned up by the reaper, and nothing said is lost. */
import { NativeConnection } from "@temporalio/worker";
import { pino } from "pino";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { findSession } from "../../activities/store/sessions.ts";
import { parkGuidance, parkedGuidance } from "../../activities/store/guidance.ts";
import { sendGuidance } from "../../client/send-guidance.ts";
import { startReaper } from "../../worker/reaper.ts";
import { startAgent, type AgentHarness, type RunningSession } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { wordsOf } from "../support/scripted-summaries.ts";
import { callRows } from "../support/stored.ts";

let agent: AgentHarness;
let connection: NativeConnection;
beforeAll(async () => {
  agent = await startAgent();
  connection = await NativeConnection.connect({ address: inject("temporalAddress") });
});
afterAll(async () => {
  await agent.close();
  await connection.close();
});

const store = () => agent.database.store;
const boxOf = ({ id }: RunningSession) =>
  agent.docker
    .getContainer(`longhaul-${id}`)
    .inspect()
    .then(
      () => "there",
      () => "gone",
    );

/** With a busy machine's patience: the first session of a file loads what all need. */
async function heard(session: RunningSession, type: string): Promise<void> {
  await eventually(
    `event ${type}`,
    async () => (await session.events()).some((event) => event.type === type),
    60_000,
  );
}

/** One round of it, as every worker makes at its start and every ten minutes. */
async function reap(): Promise<void> {
  const stop = startReaper({
    host: agent.deps.sandboxHost,
    store: store(),
    connection,
    namespace: "default",
    logger: pino({ level: "silent" }),
    everyMs: 3_600_000,
  });
  await stop();
}

async function untilCallRuns({ id }: RunningSession): Promise<void> {
  await eventually("a call runs", async () => (await callRows(store(), id, "running")).length > 0, 60_000);
}

it.each([
  ["while the model speaks", (session: RunningSession) => heard(session, "llm:chunk")],
  ["while a command runs", untilCallRuns],
] as const)(
  "a run that is terminated %s leaves no box, an ended session, and all that waited [R58]",
  async (phase, reached) => {
    const script = scriptedModel();
    if (phase.includes("command")) script.calls("bash", { command: "sleep 600" });
    else script.calls("bash", { command: "true" }).answers(text("I begin"), { type: "hang" });
    const session = await agent.start(script.says("I have heard it all."));
    await reached(session);
    const parked = {
      id: "parked",
      parts: [{ type: "text", text: "use tabs" }],
      queuedAt: new Date().toISOString(),
    };
    await parkGuidance(store().db, session.id, [parked as never]);
    await session.handle.terminate("by hand");
    expect(await boxOf(session)).toBe("there");
    await reap();
    expect(await boxOf(session)).toBe("gone");
    expect(await findSession(store().db, session.id)).toMatchObject({ status: "cancelled" });
    expect((await parkedGuidance(store().db, session.id, 10)).map(({ id }) => id)).toEqual(["parked"]);
    await sendGuidance(clientServices(agent), await sessionRow(agent, session.id), {
      id: "resume",
      text: "go on",
      attachments: [],
    });
    expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({
      status: "completed",
      result: "I have heard it all.",
    });
    const last = session.model.requests.at(-1);
    const words = last ? wordsOf(last) : "";
    expect(words.split("use tabs")).toHaveLength(2);
    expect(words.indexOf("use tabs")).toBeLessThan(words.indexOf("go on"));
  },
);

it("what a step had delivered when its run was terminated is heard by the run that takes the session up [R58] [invariant 6]", async () => {
  const script = scriptedModel().answers(text("I begin"), { type: "hang" }).says("I have heard it all.");
  const session = await agent.start(script, {
    input: {
      guidance: [
        { id: "first", parts: [{ type: "text", text: "use tabs" }], queuedAt: "2026-11-21T00:00:00Z" },
      ],
    },
  });
  await heard(session, "llm:chunk");
  await session.handle.terminate("by hand");
  await reap();
  await sendGuidance(clientServices(agent), await sessionRow(agent, session.id), {
    id: "resume",
    text: "go on",
    attachments: [],
  });
  await agent.client.workflow.getHandle(session.id).result();
  const last = session.model.requests.at(-1);
  expect((last ? wordsOf(last) : "").split("use tabs")).toHaveLength(2);
});
