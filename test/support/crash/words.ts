/** What a session said, to be compared with what another one said. */
import type { SessionServices } from "../checker/collect.ts";
import { transcriptOf } from "../stored.ts";
import type { CrashScript } from "./scripts.ts";

/**
 * The live transcript without what differs by chance: rows' ids and times, the provider's item ids, and the wording for
 * a change that was already made.
 */
export async function wordsOfTranscript(
  { database }: SessionServices,
  id: string,
  { notices }: Pick<CrashScript, "notices"> = {},
): Promise<object[]> {
  const rows = await transcriptOf(database.store, id);
  const isMoved = ({ kind }: { readonly kind: string }) => notices === "anywhere" && kind === "notice";
  const words = rows
    .filter((row) => row.supersededEpoch === null)
    .toSorted((a, b) => a.position - b.position)
    .map(({ step, slot, role, kind, content, isCompacted, prunedStep }) => ({
      step,
      slot,
      role,
      kind,
      content: (content as object[]).map(withoutChance),
      isCompacted,
      prunedStep,
    }));
  const moved = words.filter(isMoved).map(({ kind, content }) => ({ kind, content }));
  return [...words.filter((row) => !isMoved(row)), ...moved];
}

/** How long something took, as texts for the model say it. */
const DURATION = /\b\d+(?:\.\d+)? (?:ms|s|min|h)\b(?: \d+(?:\.\d+)? (?:s|min)\b)?/g;
/** Texts that say it. */
const TIMED = /^(?:Waited |\[Commands in the background:|\[Your work was verified)/;

function withoutChance(part: {
  readonly text?: string;
  readonly toolName?: string;
  readonly providerOptions?: unknown;
}): object {
  const { providerOptions: _, text, ...rest } = part;
  if (text === undefined) return rest;
  const [edited] = (part.toolName === "edit_file" && /^Edited \w+\.\w+/.exec(text)) || [text];
  // A file that an earlier attempt wrote already exists.
  const written = part.toolName === "write_file" ? edited.replace(/^(Created|Replaced)/, "Wrote") : edited;
  const untimed = TIMED.test(written) ? written.replaceAll(DURATION, "some time") : written;
  return { ...rest, text: untimed.replace(/\n\[took [\d.]+ s\]$/, "") };
}
