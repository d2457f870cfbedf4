import { z } from "zod";
import { duration } from "../text/format.ts";
import { failure, typedTool } from "./tool.ts";

/** A list as a model may write it: one id is a list of one. */
const ids = z.preprocess(
  (value) => (typeof value === "string" ? [value] : value),
  z.array(z.string().min(1)).min(1).max(20),
);

const input = z.strictObject({
  reason: z.string().trim().min(1).max(500).describe("For people."),
  seconds: z.number().optional().describe("The longest wait."),
  until: z.string().optional().describe("Or a time with its zone."),
  process: ids.optional().describe("Ends with one of these background commands."),
  question: z.string().optional().describe("Ends with its answer."),
});
export type WaitInput = z.infer<typeof input>;

/** Performed by the workflow: `beginWait` and `endWait` take the place of `run`, which only gets what cannot be a wait. */
export const wait = typedTool<WaitInput>({
  name: "wait",
  description: "Waits without cost, after the step's other calls. A message ends it.",
  input,
  readOnly: true,
  about: ({ reason }) => reason,
  run: async () =>
    failure("This call could not wait; nothing was waited for. Call wait once more, alone in its step."),
});

/** Shorter waits are raised to it. Source: the tool's contract. */
const MIN_MS = 5_000;

type ReadWait =
  | {
      readonly ok: true;
      /** In ms since 1970; undefined if only what it waits for ends it. */
      readonly untilMs: number | undefined;
      /** What was taken otherwise than it was written, for the model. */
      readonly remark: string | undefined;
    }
  | { readonly ok: false; readonly why: string };

/**
 * When a call ends at the latest, or why it cannot wait.
 * @param nowMs the server's time; `maxWaitMs` the longest wait that the session may have
 */
export function readWait(
  { seconds, until, question, process }: Omit<WaitInput, "reason">,
  { nowMs, maxWaitMs }: { readonly nowMs: number; readonly maxWaitMs: number },
): ReadWait {
  const most = `at most ${duration(maxWaitMs)} (${maxWaitMs / 1_000} seconds)`;
  const now = new Date(nowMs).toISOString();
  if (question !== undefined && process !== undefined)
    return refuse("Give process or question, not both: a message or an answer ends every wait.");
  if (seconds === undefined && until === undefined && question === undefined)
    return refuse(`Give seconds or until: the longest that it waits, ${most}.`);
  if (seconds !== undefined && !(seconds > 0))
    return refuse(
      `seconds must be more than 0 (less than ${MIN_MS / 1_000} counts as ${MIN_MS / 1_000}), ${most}.`,
    );
  if (seconds !== undefined && seconds * 1_000 > maxWaitMs) return refuse(`seconds is too long: ${most}.`);
  const at = until === undefined ? undefined : readTime(until);
  if (until !== undefined && at === undefined)
    return refuse(
      `until is not a time with a zone, such as ${new Date(nowMs + 3_600_000).toISOString().slice(0, 19)}Z or …+01:00. It is ${now} now.`,
    );
  if (at !== undefined && at <= nowMs) return refuse(`until is in the past: it is ${now} now.`);
  if (at !== undefined && at - nowMs > maxWaitMs)
    return refuse(`until is too far away: ${most}. It is ${now} now.`);
  const ends = [seconds === undefined ? undefined : nowMs + seconds * 1_000, at].filter(
    (ms) => ms !== undefined,
  );
  if (ends.length === 0) return { ok: true, untilMs: undefined, remark: undefined };
  const untilMs = Math.round(Math.min(...ends));
  if (untilMs - nowMs >= MIN_MS) return { ok: true, untilMs, remark: undefined };
  return { ok: true, untilMs: nowMs + MIN_MS, remark: `At least ${MIN_MS / 1_000} s are waited.` };
}

const refuse = (why: string): ReadWait => ({ ok: false, why: `Not waited. ${why}` });

/** Without a zone it would be any of 26 hours. */
const WITH_ZONE = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?\s?(Z|[+-]\d\d:?\d\d)$/i;

function readTime(text: string): number | undefined {
  const written = text.trim();
  if (!WITH_ZONE.test(written)) return undefined;
  const ms = Date.parse(
    written
      .replace(" ", "T")
      .replace(" ", "")
      .replace(/([+-]\d\d)(\d\d)$/, "$1:$2"),
  );
  return Number.isNaN(ms) ? undefined : ms;
}
