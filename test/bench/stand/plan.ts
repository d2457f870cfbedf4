/** What a benchmark's session does: written in its task, read by its model. Pure. */
import type { Reply, ReplyPart } from "../../support/model-server/wire.ts";

export interface Plan {
  /** Model calls that ask for tools; the one after them ends the session. */
  readonly steps: number;
  /** Tool calls of each step. */
  readonly calls: number;
  readonly tool: "probe" | "bash";
  /** Of `bash`; `{key}` stands for the call's number, so that no two calls are the same. */
  readonly command?: string;
  /** Characters of a probe's result. */
  readonly chars?: number;
  /** Before its calls the model says something for so long, at 40 tokens a second. */
  readonly streamMs?: number;
  /** The model says a word and then nothing more. */
  readonly hangs?: boolean;
  /** The request, from 1, on which it does so; asked again, it continues with that step. */
  readonly hangsAt?: number | undefined;
}

/** A model whose window a session of some hundred steps outgrows, in tokens. */
export const SMALL_MODEL = "gpt-4o-small";
export const SMALL_WINDOW_TOKENS = 32_000;

const MARK = "bench ";
/** Source: the 40 tokens a second, of a usual length. */
export const TOKEN = "abc ";
export const TOKEN_MS = 25;

export function taskOf(plan: Plan): string {
  return MARK + JSON.stringify(plan);
}

export function planOf(task: string): Plan | undefined {
  return task.startsWith(MARK) ? (JSON.parse(task.slice(MARK.length)) as Plan) : undefined;
}

/** @param index which of the session's requests, from 1 */
export function replyTo(plan: Plan, index: number): Reply {
  if (plan.hangs === true) return { parts: [{ type: "text", text: "Wait." }, { type: "hang" }] };
  if (index === plan.hangsAt) return replyTo({ ...plan, hangs: true }, index);
  if (plan.hangsAt !== undefined && index > plan.hangsAt)
    return replyTo({ ...plan, hangsAt: undefined }, index - 1);
  if (index > plan.steps) return { parts: [{ type: "text", text: "Done." }] };
  const parts = Array.from({ length: plan.calls }, (_, call): ReplyPart => {
    const key = `${index}.${call}`;
    return plan.tool === "bash"
      ? {
          type: "call",
          name: "bash",
          arguments: { command: (plan.command ?? "true {key}").replace("{key}", key) },
        }
      : { type: "call", name: "probe", arguments: { key, chars: plan.chars ?? 2_048 } };
  });
  if (plan.streamMs === undefined) return { parts };
  const text = TOKEN.repeat(Math.round(plan.streamMs / TOKEN_MS));
  return { parts: [{ type: "text", text }, ...parts], chunkChars: TOKEN.length, chunkDelayMs: TOKEN_MS };
}
