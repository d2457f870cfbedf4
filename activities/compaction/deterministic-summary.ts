/** A summary made without a model: the last fallback, and also a strategy. Pure. */
import { composeSummary, type SummaryMaterial } from "./compose-summary.ts";
import type { StoredMessage } from "../contract/message.ts";
import { callsIn, errorsIn, textOf } from "./session-facts.ts";
import { excerpt, parseSections, withoutGaps } from "./summary-document.ts";

/** Shares of the cap, in characters at three per token, for free text; lists take the rest. */
const STATE_SHARE = 0.2;
const ERROR_SHARE = 0.12;

/** Always succeeds, and always produces the same text for the same rows. */
export function deterministicSummary(material: SummaryMaterial): string {
  const before = withoutGaps(parseSections(material.previous ?? ""));
  const maxChars = material.maxTokens * 3;
  return composeSummary(material, {
    "Current State": excerpt(currentState(material.replaced), maxChars * STATE_SHARE),
    "Errors & Resolutions": errors(material.replaced, before["Errors & Resolutions"], maxChars * ERROR_SHARE),
  });
}

function currentState(replaced: readonly StoredMessage[]): string {
  const said = replaced.filter((row) => row.kind === "answer" && textOf(row) !== "").slice(-3);
  const lines = said.map((row) => `- Step ${row.step}: ${excerpt(textOf(row).replaceAll(/\s+/g, " "), 250)}`);
  const counts = new Map<string, number>();
  for (const { call } of callsIn(replaced)) counts.set(call.toolName, (counts.get(call.toolName) ?? 0) + 1);
  const tools = [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
  return [tools === "" ? "" : `Tool calls replaced here: ${tools}.`, ...lines]
    .filter((line) => line !== "")
    .join("\n");
}

function errors(replaced: readonly StoredMessage[], before: string, maxChars: number): string {
  const recent = errorsIn(replaced, 5).join("\n");
  const room = Math.max(0, maxChars - recent.length - 1);
  return excerpt(
    [excerpt(/^none\.?$/i.test(before) ? "" : before, room), recent].filter(Boolean).join("\n"),
    maxChars,
  );
}
