/** Sessions whose rows are put back to an older copy while they go on in Temporal. */
import { expect } from "vitest";
import { findSessionRow } from "../../activities/store/reading.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import type { AgentHarness, RunningSession, StartOptions } from "./agent-harness.ts";
import { clientServices } from "./client-services.ts";
import { copyRows, type OlderCopy } from "./older-copy.ts";
import { call, scriptedModel, text, type ModelScript, type Turn } from "./scripted-model.ts";
import { transcriptOf } from "./stored.ts";

/** A step that leaves a line each time it runs. */
export const marks = (step: number) => ({
  parts: [text(`Step ${step}.`), call("bash", { command: `echo ${step} >> n.marks` })],
});

/**
 * A session of steps that leave a line each, whose rows are copied while the model is asked for step `copied`.
 * @param then what the model answers to the steps after `count`
 */
export async function startCopied(
  agent: AgentHarness,
  { count, copied, ...options }: StartOptions & { readonly count: number; readonly copied: number },
  then: (script: ModelScript) => ModelScript,
): Promise<{ readonly session: RunningSession; readonly older: Promise<OlderCopy> }> {
  const older = Promise.withResolvers<OlderCopy>();
  const named = Promise.withResolvers<string>();
  const script = scriptedModel();
  for (let step = 1; step <= count; step += 1)
    script.replies(async () => {
      if (step === copied) older.resolve(await copyRows(agent.database.store, await named.promise));
      return marks(step);
    });
  const session = await agent.start(then(script), { ...options, named: named.resolve });
  return { session, older: older.promise };
}

/** A turn of the model that waits to be let go. */
export function gate(turn: Turn) {
  const [asked, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    asked: asked.promise,
    open: opened.resolve,
    turn: (async (request, index) => {
      asked.resolve();
      await opened.promise;
      return typeof turn === "function" ? turn(request, index) : turn;
    }) satisfies Turn,
  };
}

const noticesOf = async (agent: AgentHarness, session: RunningSession) =>
  (await transcriptOf(agent.database.store, session.id))
    .filter(({ kind }) => kind === "notice")
    .map(({ content }) => (content as { text: string }[])[0]?.text ?? "");

export const answeredSteps = async (agent: AgentHarness, session: RunningSession) =>
  (await transcriptOf(agent.database.store, session.id))
    .filter(({ slot }) => slot === "assistant")
    .map(({ step }) => step);

/** One event, one notice for the model, one remark in `status`. */
export async function expectSaid(
  agent: AgentHarness,
  session: RunningSession,
  from: number,
  to: number,
): Promise<void> {
  expect(await session.dataOf("record:missing")).toEqual([{ from, to }]);
  const sentence = from === to ? `step ${from} is missing` : `steps ${from} to ${to} are missing`;
  expect((await noticesOf(agent, session)).filter((notice) => notice.includes(sentence))).toHaveLength(1);
  const row = await findSessionRow(agent.database.store.db, session.id);
  if (row === undefined) throw new Error(`no row of ${session.id}`);
  expect(await readStatus(clientServices(agent), row)).toMatchObject({ missing: [{ from, to }] });
}
