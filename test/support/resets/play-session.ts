/** The first runs of a session that is reset, and what is in force of it afterwards. */
import { randomUUID } from "node:crypto";
import type { AgentHarness, RunningSession } from "../agent-harness.ts";
import { retry } from "../client-services.ts";
import { within } from "../eventually.ts";
import { scriptedModel } from "../scripted-model.ts";
import { transcriptOf } from "../stored.ts";
import { openQuestions } from "../../../activities/store/questions.ts";
import { runIdsOf } from "../../../activities/store/runs.ts";
import { type Surroundings, playShape, type Shape } from "./shapes.ts";

/** Which line answered each step of a run's conversation. */
type Lines = ReadonlyMap<number, number>;

export interface Playing {
  readonly agent: AgentHarness;
  readonly session: RunningSession;
  readonly shape: Shape;
  readonly unsound: Surroundings["unsound"];
  line: number;
  readonly lines: Map<string, Lines>;
  /** The request by which each conversation asked for a step. */
  readonly views: Map<string, string>;
}

/** @returns once the session, and whatever else its shape has, has ended */
export async function begin(agent: AgentHarness, shape: Shape): Promise<Playing> {
  let playing: Playing | undefined;
  let handle: RunningSession["handle"] | undefined;
  const send = async (name: string) => {
    const inputs: Readonly<Record<string, unknown>> = {
      compact: {},
      guidance: { id: randomUUID(), text: "Please go on." },
    };
    await handle?.signal(name, inputs[name] ?? randomUUID());
  };
  const first = async (step: number) => {
    const { signal } = shape;
    if (signal === undefined || playing !== undefined) return;
    if (step === signal.step) await send(signal.name === "guidance" ? signal.name : "compact");
    if (step === signal.step + 2 && signal.name === "compactAndUndo") await send("undoCompaction");
  };
  const lineOf = () => playing?.line ?? 1;
  const script = scriptedModel().forever(playShape(shape, lineOf, first));
  const surroundings = await shape.surroundings?.();
  const config = { ...shape.config, ...surroundings?.config };
  const { served } = shape;
  let session = await agent.start(script, { config, served });
  handle = session.handle;
  if (shape.makes !== undefined) {
    await session.result();
    session = await shape.makes(agent, session);
  }
  const started: Playing = {
    agent,
    session,
    shape,
    unsound: surroundings?.unsound,
    line: 1,
    lines: new Map(),
    views: new Map(),
  };
  await untilOver(started, undefined);
  if (shape.says !== undefined) {
    await note(started);
    await session.resume(shape.says, "go-on");
    await untilOver(started, undefined);
  }
  await note(started);
  playing = started;
  if (shape.retryFrom !== undefined) {
    started.line += 1;
    await untilOver(started, (await retry(agent, session.id, shape.retryFrom)).runId);
    await note(started);
  }
  return started;
}

/** A run that takes so long hangs, even on a machine with ten times more work than it can do. */
const HANGS_MS = 240_000;

/** Answers what is asked until the run, and those that continue it as new, have ended. @returns its outcome */
export async function untilOver({ agent, session }: Playing, runId: string | undefined): Promise<string> {
  const handle = agent.client.workflow.getHandle(session.id, runId);
  let isOver = false;
  const answering = (async () => {
    while (!isOver) {
      for (const { id, kind } of await openQuestions(agent.database.store.db, session.id)) {
        const answer = kind === "approval" ? { action: "allow" } : { option: 1 };
        await agent.client.workflow
          .getHandle(session.id)
          .executeUpdate("answerQuestion", { args: [{ question: id, ...answer }] })
          // It may be over, or another run may have the session.
          .catch(() => undefined);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  })();
  try {
    const result = await within(handle.result(), session.id, HANGS_MS);
    const { status, delivery = "done" } = result;
    return `${status}${delivery === "done" ? "" : ` (${delivery})`}: ${result.result}`;
  } catch (error) {
    const cause = (error as { cause?: { type?: string; message?: string } }).cause;
    return `failed: ${cause?.type ?? (error as Error).name}: ${cause?.message ?? (error as Error).message}`;
  } finally {
    isOver = true;
    await answering;
  }
}

export const asText = (lines: Lines) => [...lines].map(([step, line]) => `${step}:${line}`).join(" ");

/** The lines of the live answers. */
export async function liveLines({ agent, session }: Playing): Promise<Lines> {
  const rows = await transcriptOf(agent.database.store, session.id);
  const live = rows.filter((row) => row.supersededEpoch === null && row.slot === "assistant");
  return new Map(
    live.map((row) => {
      const [, line] = /Line (\d+)\./.exec(JSON.stringify(row.content)) ?? [];
      return [row.step, Number(line)];
    }),
  );
}

/** Notes the conversation in force for a run and those that continue it. Runs that were overtaken have none. */
export async function note(playing: Playing, since?: string): Promise<void> {
  const lines = await liveLines(playing);
  for (const runId of await runIdsOf(playing.agent.database.store.db, playing.session.id)) {
    if (playing.lines.has(runId)) return;
    playing.lines.set(runId, lines);
    if (runId === since) return;
  }
}
