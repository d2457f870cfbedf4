/** The parts of calls that events carry: arguments and results, cut to what fits on a person's screen. Pure. */
import { cutChars, cutTail } from "../text/cut.ts";
import type { ToolOutcome } from "../contract/message.ts";
import type { EventData } from "./event.ts";
import { callKey, type LedgerRow } from "./tool-calls.ts";

/** Source: ours, some two screens. */
const MAX_CHARS = 8_000;
/** Length of the excerpt from a result's end: some lines. */
const EXCERPT_CHARS = 300;

export function boundedInput(input: unknown): Pick<EventData["llm:tool-call"], "input" | "inputCut"> {
  const json = JSON.stringify(input) ?? "";
  return json.length <= MAX_CHARS ? { input } : { inputCut: cutChars(json, MAX_CHARS) };
}

/** A call's outcome, whoever performed it. `text` is what the model reads; the call's handle gives the rest of a long result. */
export function resultEvent(
  call: LedgerRow,
  end: {
    readonly outcome: ToolOutcome;
    readonly text: string;
    readonly durationMs: number;
    readonly exitCode?: number | undefined;
    readonly truncated?: boolean;
  },
): { readonly type: "llm:tool-result"; readonly data: EventData["llm:tool-result"] } {
  const { outcome, text, durationMs, exitCode = null, truncated = false } = end;
  const { callId, index, name } = call;
  const shown =
    text.length <= MAX_CHARS ? { text } : { text: cutChars(text, MAX_CHARS), handle: callKey(call) };
  const excerpt = cutTail(text, EXCERPT_CHARS);
  return {
    type: "llm:tool-result",
    data: { callId, index, name, outcome, durationMs, exitCode, truncated, excerpt, ...shown },
  };
}
