/** The same id twice: two clients at once, and a client that lost its connection before the answer. */
import { eq } from "drizzle-orm";
import { expect, it, vi } from "vitest";
import { messages, sessions } from "../../activities/store/schema/index.ts";
import { exitCodes } from "../../client/console/errors.ts";
import { sendGuidance } from "../../client/sessions/guidance.ts";
import { startSession } from "../../client/sessions/start-session.ts";
import { runConfig, type RunningSession, useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { DOT_PNG } from "../support/images.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { wholeDatabase, wholeHistory } from "../support/stored.ts";
import { timesAsked } from "../support/scripted-summaries.ts";
import { findSession } from "../../activities/store/sessions.ts";

const agent = useAgent();

const order = (id: string, task: string) => ({
  id,
  task,
  config: runConfig(),
  attachments: [],
  folder: undefined,
});

/** A session that the client starts, with its own model. */
async function prepared(
  name: string,
): Promise<{ like: RunningSession; made: RunningSession; release: () => void }> {
  const gate = Promise.withResolvers<void>();
  const script = scriptedModel()
    .says("The first one only lends its model.")
    .replies(async () => {
      await gate.promise;
      return { parts: [text("I have heard the task.")] };
    })
    .forever({ parts: [text("I have heard you.")] });
  const like = await agent.run(script);
  return { like, made: agent.adopt(`${like.id}-${name}`, like), release: gate.resolve };
}

it(
  "two clients that start one id at once share its session; another task is refused",
  { tags: ["R19"] },
  async () => {
    const { made, release } = await prepared("twice");
    const services = clientServices(agent);
    const started = await Promise.all([
      startSession(services, order(made.id, "Build it.")),
      startSession(services, order(made.id, "Build it.")),
    ]);
    expect(started.map(({ id }) => id)).toEqual([made.id, made.id]);
    expect(started.filter(({ attached }) => attached)).toHaveLength(1);
    await expect(startSession(services, order(made.id, "Something else."))).rejects.toMatchObject({
      exitCode: exitCodes.impossible,
    });
    release();
    expect(await made.result()).toMatchObject({ status: "completed", result: "I have heard the task." });
    const { db } = agent.database.store;
    expect(await db.select().from(sessions).where(eq(sessions.id, made.id))).toHaveLength(1);
    const tasks = await db.select().from(messages).where(eq(messages.sessionId, made.id));
    expect(tasks.filter((row) => row.kind === "task")).toHaveLength(1);
    await expect(startSession(services, order(made.id, "Build it."))).rejects.toMatchObject({
      exitCode: exitCodes.impossible,
    });
  },
);

it(
  "a repeated start and a repeated message, after a lost answer, count once",
  { tags: ["R50"] },
  async () => {
    const { made, release } = await prepared("again");
    const services = clientServices(agent);
    await startSession(services, order(made.id, "Build it."));
    expect(await startSession(services, order(made.id, "Build it."))).toEqual({
      id: made.id,
      attached: true,
    });
    const message = { id: "mine", text: "use tabs", attachments: [] };
    const row = await sessionRow(agent, made.id);
    const first = await sendGuidance(services, row, message);
    expect(first).toMatchObject({ queued: true });
    expect(await sendGuidance(services, row, message)).toMatchObject({ queued: false, acknowledged: true });
    release();
    await made.result();
    expect(timesAsked(made.model, ["use tabs"])).toEqual([1]);
  },
);

it("the client's input is clean and masked in Postgres and in Temporal's history", async () => {
  const secret = "s3cret/of-the-client~42";
  vi.stubEnv("CLIENT_API_KEY", secret);
  try {
    const { made, release } = await prepared("masked");
    const services = clientServices(agent);
    const odd = (name: string) => `${name} ${secret}\0\ud83d`;
    const picture = { bytes: DOT_PNG, mediaType: "image/png", filename: odd("a.png") };
    const folder = {
      files: [],
      bytes: 0,
      instructions: odd("Rules:"),
      skills: [],
      path: odd("src"),
      notes: [],
    };
    await startSession(services, { ...order(made.id, odd("Build")), attachments: [picture], folder });
    const row = await sessionRow(agent, made.id);
    await sendGuidance(services, row, { id: odd("mine"), text: odd("use"), attachments: [picture] });
    release();
    await made.result();
    const { db } = agent.database.store;
    const [stored] = await db.select().from(sessions).where(eq(sessions.id, made.id));
    expect(stored?.task).toBe("Build [masked]␀\uFFFD");
    expect((await findSession(db, made.id))?.system).toContain("Rules: [masked]␀\uFFFD");
    expect(await wholeDatabase(agent.database.store)).not.toContain(secret);
    const history = await wholeHistory(made.handle);
    expect(history).toContain("[masked]");
    expect(history).not.toContain(secret);
  } finally {
    vi.unstubAllEnvs();
  }
});
