/** The model in a process of its own, so that its work counts for no other: answers at once, as the session's plan says. */
import { estimateText } from "../../../activities/text/tokens.ts";
import { createModelServer } from "../../support/model-server/create-model-server.ts";
import type { ParsedRequest, ServedRequest } from "../../support/model-server/wire.ts";
import { summaryText } from "../../support/compacting.ts";
import { now, serve } from "./channel.ts";
import { planOf, replyTo, SMALL_MODEL, SMALL_WINDOW_TOKENS } from "./plan.ts";

interface Seen {
  /** When each request was there and parsed. */
  readonly arrivals: number[];
  readonly aborts: number[];
  /** Requests for summaries. */
  summaries: number;
  readonly waiters: { readonly count: number; readonly kind: "arrivals" | "aborts"; resolve: () => void }[];
}

const sessions = new Map<string, Seen>();

function seenOf(id: string): Seen {
  const seen = sessions.get(id) ?? { arrivals: [], aborts: [], summaries: 0, waiters: [] };
  sessions.set(id, seen);
  return seen;
}

function note(id: string, kind: "arrivals" | "aborts"): Seen {
  const seen = seenOf(id);
  seen[kind].push(now());
  for (const waiter of seen.waiters) if (seen[waiter.kind].length >= waiter.count) waiter.resolve();
  return seen;
}

function taskIn(request: ParsedRequest): string {
  const [first] = request.items;
  return first?.type === "message"
    ? first.parts.map((part) => ("text" in part ? part.text : "")).join("")
    : "";
}

/** Transcripts of a thousand requests would fill this process's memory. */
function forgetRequests(log: readonly ServedRequest[]): void {
  for (const served of log.slice(-200)) if (served.endedAt !== undefined) delete served.request;
}

const server = await createModelServer({
  models: {
    "gpt-4o": { window: 128_000, maxOutput: 16_384, input: ["text", "image", "pdf"] },
    [SMALL_MODEL]: { window: SMALL_WINDOW_TOKENS, maxOutput: 4_096, input: ["text"] },
  },
  // Not the real tokenizer: the model should take no time.
  countTokens: estimateText,
  onAbort: (served) => void note(served.request?.cacheKey ?? "", "aborts"),
  reply: (request) => {
    const id = request.cacheKey ?? "";
    forgetRequests(server.log);
    if (request.tools.length === 0 || request.raw["tool_choice"] === "none") {
      seenOf(id).summaries += 1;
      return { parts: [{ type: "text", text: summaryText({ state: "Probing goes on." }) }] };
    }
    const plan = planOf(taskIn(request));
    if (plan === undefined) throw new Error("This session has no plan.");
    return replyTo(plan, note(id, "arrivals").arrivals.length);
  },
});

const verbs = {
  url: () => server.url,
  arrivals: (id: string) => seenOf(id).arrivals,
  summaries: (id: string) => seenOf(id).summaries,
  /** Resolves with the time of the session's nth request, or of the nth on which the client hung up. */
  nth: async (id: string, count: number, kind: "arrivals" | "aborts" = "arrivals"): Promise<number> => {
    const seen = seenOf(id);
    if (seen[kind].length < count)
      await new Promise<void>((resolve) => seen.waiters.push({ count, kind, resolve }));
    return seen[kind][count - 1] ?? Number.NaN;
  },
};
export type ModelVerbs = typeof verbs;

serve(verbs, () => server.close());
