/** Failed checks: what a forge keeps of each, the part that says why, and the whole log for the session to read. */
import type { CheckFacts } from "../forge/facts.ts";
import { saveOutputPart } from "../store/tool-calls.ts";
import { cutPage } from "../text/cut.ts";
import { failureExcerpt, failureSignature } from "../verify/failure-excerpt.ts";
import { failingStep } from "./failing-step.ts";
import type { Followed } from "./followed.ts";
import type { CheckEvidence } from "./round-message.ts";

interface Failure extends Pick<CheckEvidence, "part"> {
  /** Equal for equal failures. */
  readonly signature: string;
  /** The whole log, masked. */
  readonly log: string | undefined;
}

export interface FailureReader {
  /** Reads each check once. @throws ForgeRefusal */
  read(check: CheckFacts): Promise<Failure>;
  /** Keeps the logs of these checks, each under a handle. */
  keep(round: number, checks: readonly CheckFacts[]): Promise<ReadonlyMap<string, CheckEvidence>>;
}

export function readFailures(followed: Followed): FailureReader {
  const { deps, session, forge, call } = followed;
  const known = new Map<string, Promise<Failure>>();

  async function readOne(check: CheckFacts): Promise<Failure> {
    const { text, annotations = [], summary, steps } = (await forge.readLog(call, check)) ?? {};
    const notes = annotations
      .filter(({ level }) => level === "failure")
      .slice(0, MAX_ANNOTATIONS)
      .map(({ path, line, text: says }) => `${path}${line === undefined ? "" : `:${line}`}: ${says}`);
    const log = text === undefined ? undefined : deps.sanitizer.clean(text);
    const told = [...notes, ...(log === undefined ? [] : [log]), ...(summary === undefined ? [] : [summary])];
    if (told.length === 0) return { signature: check.name, part: undefined, log };
    const failed = log === undefined ? undefined : failingStep(log, steps);
    const excerpt = failureExcerpt(failed?.text ?? deps.sanitizer.clean(summary ?? ""));
    const { command } = failed ?? {};
    const isCommandLost = command !== undefined && !excerpt.text.includes(command);
    const part = [
      ...notes.map(deps.sanitizer.clean),
      ...(isCommandLost ? [`##[group]${command}`] : []),
      ...(log === undefined && summary === undefined ? [] : [excerpt.text]),
    ];
    return {
      signature: failureSignature(check.name, failed?.step ?? "failed", excerpt.firstError ?? notes[0]),
      part: part.join("\n"),
      log,
    };
  }

  const read = (check: CheckFacts): Promise<Failure> => {
    const key = JSON.stringify([check.name, check.job, check.url]);
    const reading = known.get(key) ?? readOne(check);
    known.set(key, reading);
    return reading;
  };

  return {
    read,
    async keep(round, checks) {
      const evidence = new Map<string, CheckEvidence>();
      for (const [index, check] of checks.entries()) {
        const { part, log } = await read(check);
        const handle = log === undefined ? undefined : `follow${round}c${index}`;
        if (handle !== undefined && log !== undefined) await keepLog(handle, log);
        evidence.set(check.name, { part, handle });
      }
      return evidence;
    },
  };

  async function keepLog(handle: string, log: string): Promise<void> {
    for (let part = 0, offset = 0; offset < log.length; part += 1) {
      const { text: content, end } = cutPage(log, offset, PIECE_CHARS);
      await saveOutputPart(deps.store.db, { sessionId: session.id, handle, part, offset, content });
      offset = end;
    }
  }
}

/** Chosen: the first ten say enough. */
const MAX_ANNOTATIONS = 10;
/** Of a stored output, as of a command's: one row is read at a time. */
const PIECE_CHARS = 256 * 1_024;
