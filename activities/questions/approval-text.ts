/** What a person reads before allowing a call: first the part that a rule matched, then all of it. Pure. */
import { cutChars, cutTail, shorten } from "../text/cut.ts";
import type { ToolCallPart } from "../contract/message.ts";
import { MAX_SHOWN_CHARS } from "../contract/questions.ts";
import type { Verdict } from "../tools/permissions/permissions.ts";

/** A call of this length is seen whole, also in Temporal's Web UI. */
const SHORT_CHARS = 160;
/** Of a matched part, on each side of the words that a rule names. */
const AROUND_CHARS = 80;

type Asking = Extract<Verdict, { readonly action: "ask" | "deny" }>;

/** The whole text of an approval, however long the call is. */
export function approvalText(call: ToolCallPart, { rule, about }: Pick<Asking, "rule" | "about">): string {
  const whole = inputText(call);
  const { match } = rule;
  const because = match === undefined ? "" : `\n(rule: ${match})`;
  if (whole.length <= SHORT_CHARS) return `${call.toolName}: ${whole}${because}`;
  const part = matchedPart(about, match ?? "");
  return `${call.toolName}: ${part}${because}\nThe whole call has ${whole.length} characters:\n${whole}`;
}

/** The part of the call that a person needs to see before allowing it. */
function inputText({ input }: ToolCallPart): string {
  const { command, ...more } = (input ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof command !== "string") return JSON.stringify(input) ?? "";
  return Object.keys(more).length === 0 ? command : `${command}\n${JSON.stringify(more)}`;
}

/** What surrounds the longest words of the pattern; where none is found, the beginning. */
function matchedPart(text: string, pattern: string): string {
  const words = pattern.split("*").toSorted((a, b) => b.length - a.length);
  const [longest = ""] = words;
  const at = Math.max(0, longest === "" ? 0 : text.indexOf(longest));
  const from = Math.max(0, at - AROUND_CHARS);
  const before = cutTail(text.slice(0, at), at - from);
  const rest = text.slice(at);
  return `${from === 0 ? "" : "…"}${before}${shorten(rest, longest.length + AROUND_CHARS)}`;
}

/** A stored question as its event has it. What is cut can be read whole, and the text says how. */
export function shownQuestion(session: string, text: string): string {
  if (text.length <= MAX_SHOWN_CHARS) return text;
  const last = `\n… cut: ${MAX_SHOWN_CHARS} of ${text.length} characters are shown. Read all of it before you answer: longhaul questions ${session}`;
  return `${cutChars(text, MAX_SHOWN_CHARS - last.length)}${last}`;
}
