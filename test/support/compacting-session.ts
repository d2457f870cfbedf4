/** A stored session of some steps, and its compaction and prune over a model that follows a script. Real Postgres. */
import type { MockActivityEnvironment } from "@temporalio/testing";
import { eq } from "drizzle-orm";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import type { Message } from "../../activities/contract/message.ts";
import { estimateMessage } from "../../activities/contract/request-size.ts";
import type {
  CompactionFacts,
  PruneFacts,
  SummarizeInput,
  UndoneFacts,
} from "../../activities/contract/activities.ts";
import type { Model, ModelAnswer, ModelRequest } from "../../activities/model/model.ts";
import { createPrune } from "../../activities/step/prune.ts";
import { attemptOf, loneDeps } from "./lone-deps.ts";
import { readEvents } from "../../activities/store/events.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { loadView } from "../../activities/store/load-view.ts";
import { insertMessage, takeSequences } from "../../activities/store/transcript.ts";
import { createSummarize } from "../../activities/step/summarize.ts";
import { createUndoCompaction } from "../../activities/step/store-compaction.ts";
import { rowsOf } from "./rows.ts";
import type { TestDatabase } from "./test-database.ts";
import { configOf } from "./run-config.ts";
import { roundsOf, billsOf, transcriptOf } from "./stored.ts";

export const SECRET = "sk-secret-0123456789abcdef";
const RUN = "run-1";
let count = 0;

/** A text, an error to throw, or what to do with the request. */
export type Scripted =
  | string
  | Error
  | ((request: ModelRequest, signal: AbortSignal) => Promise<ModelAnswer>);

export function answer(text: string): ModelAnswer {
  const usage = { input: 900, output: 90, cached: 0, reasoning: 0 };
  return { content: [{ type: "text", text }], finish: "stop", usage, firstTokenMs: 1, durationMs: 2 };
}

/** A session of `steps` steps on a 32k window, and its activities over a model that follows a script. */
export async function compactingSession(database: TestDatabase, steps: Message[], ...script: Scripted[]) {
  const id = `compaction-${count++}`;
  const { db } = database.store;
  const config = configOf(
    { context: { strategy: "threshold-rounds" } },
    { contextWindow: 32_000, input: ["text"] },
  );
  await createSession(database.store, { id, task: "Build the app.", config });
  await db.update(sessions).set({ runId: RUN }).where(eq(sessions.id, id));
  let reached = 0;
  const add = async (list: Message[], fromStep: number) => {
    const first = await takeSequences(db, id, list.length);
    for (const { sequence, step, slot, kind, ...message } of rowsOf(list, first, fromStep)) {
      reached = Math.max(reached, step);
      const { role, content } = message;
      const tokens = estimateMessage(message);
      await insertMessage(db, id, sequence, {
        epoch: 1,
        step,
        slot,
        kind,
        message: { role, content } as Message,
        tokens,
      });
    }
  };
  await add(steps, 0);
  const requests: ModelRequest[] = [];
  const model: Model = {
    ask: async (request, _onDelta, signal) => {
      const next = script[requests.push(request) - 1];
      if (next === undefined) throw new Error("This request was not expected.");
      if (next instanceof Error) throw next;
      return typeof next === "string" ? answer(next) : next(request, signal);
    },
  };
  const deps = loneDeps(database.store, { model, sanitizer: createSanitizer([SECRET]), heartbeatMs: 50 });
  const environment = (attempt: number) => attemptOf(id, RUN, attempt);
  const input = (round: number): SummarizeInput => ({ step: reached, round, trigger: "threshold" });
  return {
    id,
    add,
    /** The last step that is stored: what the workflow has finished. */
    reached: () => reached,
    /** Adds an answer with the bill of its request. */
    billed: async (step: number, usage: { readonly input: number; readonly output: number }) => {
      reached = Math.max(reached, step);
      await insertMessage(db, id, await takeSequences(db, id, 1), {
        epoch: 1,
        step,
        slot: "assistant",
        kind: "answer",
        message: { role: "assistant", content: [{ type: "text", text: "On it." }] },
        tokens: usage.output,
        meta: { usage },
      });
    },
    requests,
    environment,
    summarize: (
      round = 1,
      options: {
        attempt?: number;
        extra?: Partial<SummarizeInput>;
        environment?: MockActivityEnvironment;
      } = {},
    ) => {
      const env = options.environment ?? environment(options.attempt ?? 1);
      return env.run(createSummarize(deps), {
        ...input(round),
        ...options.extra,
      }) as Promise<CompactionFacts>;
    },
    undo: (requestId: string) =>
      environment(1).run(createUndoCompaction(deps), { step: reached, requestId }) as Promise<UndoneFacts>,
    prune: () => environment(1).run(createPrune(deps), { step: reached }) as Promise<PruneFacts>,
    view: () => loadView(db, id),
    /** All messages except the prompt. */
    all: () => transcriptOf(database.store, id),
    rounds: () => roundsOf(database.store, id),
    bills: () => billsOf(database.store, id),
    events: async () => (await readEvents(db, id, 0)).map((event) => event.type),
  };
}
