/** The offline checker as tests call it. */
import { CANARY } from "../canary.ts";
import type { ServedRequest } from "../model-server/wire.ts";
import { checkEvidence } from "./check.ts";
import { collectEvidence, type CollectOptions, type SessionServices } from "./collect.ts";
import type { Evidence } from "./evidence.ts";
import { describeViolations } from "./violation.ts";

export interface CheckedSession {
  readonly id: string;
  /** Its scripted model; the claims about prompts and bills need it. */
  readonly model?: { readonly log: readonly ServedRequest[] };
}

/**
 * Verifies the claims I1–I13 over everything that a session left in Postgres, Temporal, Docker and the strict model
 * server's log. Call it last in every test that breaks something, once the run has ended:
 *
 *     await checkSession(agent, session);               // agent: startAgent(), session: agent.start(…)
 *     await checkSession(session.place, session, { kills: 1 });   // a killable session whose worker was killed once
 *
 * - `kills`: workers that were killed or ended during a request: that many requests may lack a bill.
 * - Commands of the form `echo MARK >> NAME.marks` are counted: each call's line is there once (at most once if its
 *   outcome is not known).
 * - Of an open run, only the claims that hold before its end are checked.
 * - `watched`: the events that a watcher received, to be compared with the stored ones.
 *
 * | claim | states |
 * |---|---|
 * | I1 | sequences 1..n without hole or duplicate; one answer a step |
 * | I2 | each call one result, in order; the ledger agrees; no request was refused |
 * | I3 | a marked command ran at most once |
 * | I4 | accepted guidance is delivered once, in order, or kept |
 * | I5 | prompts grow by appending but for compaction, prune and epochs |
 * | I6 | bills are the model's bills; the rest is wasted |
 * | I7 | each round one summary, smaller; numbers without a hole |
 * | I8, I9 | run closed, session ended, sandbox and volume gone |
 * | I10 | no secret, well-formed texts, payloads up to 64 KB |
 * | I11 | events are what rows say, each once |
 * | I12 | each run replays on the current code |
 * | I13 | a wait ends once, an end in the background is told once, a verification has one outcome, money is counted once |
 *
 * @returns the evidence, for a test's own claims
 * @throws Error that lists what does not hold
 */
export async function checkSession(
  services: SessionServices,
  session: CheckedSession | string,
  options: Omit<CollectOptions, "served"> = {},
): Promise<Evidence> {
  const { id, model } = typeof session === "string" ? { id: session, model: undefined } : session;
  const evidence = await collectEvidence(services, id, {
    canaries: [CANARY],
    ...options,
    served: model?.log,
  });
  const violations = checkEvidence(evidence);
  if (violations.length > 0)
    throw new Error(`${violations.length} claims do not hold for ${id}:\n${describeViolations(violations)}`);
  return evidence;
}
