/** Starts a program as a service of this machine and waits until it answers. */
import { join } from "node:path";
import { succeeds, until } from "../../temporal/patience.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { endProcess, isAlive, launch, tail, type Launch, type ProcessMark } from "./processes.ts";
import { remember, type RunningService, type ServiceName } from "./state.ts";

export interface ServiceStart extends Omit<Launch, "log"> {
  readonly home: string;
  /** Names the service's entry in the state, and its log. */
  readonly name: ServiceName;
  /** Name shown to people, such as `Postgres`. */
  readonly title: string;
  readonly address: string;
  /** Rejects while the service does not answer. */
  readonly probe: (mark: ProcessMark) => Promise<unknown>;
  readonly timeoutMs: number;
  /** A remedy other than reading its log, such as `set DATABASE_URL to a running server`. */
  readonly otherwise: string;
  /** Further fields of the entry. */
  readonly facts?: Partial<RunningService>;
  /** The entry to use until the service answers, while its predecessor keeps `name`. */
  readonly comesUpAs?: ServiceName;
}

export const toLogPath = (home: string, name: ServiceName) => join(home, "logs", `${name}.log`);

/** A live service may be starting, or the machine is busy. A second one on the same data could not start anyway. */
const ANSWER_MS = 30_000;

/** Whether a previously started service answers; waits while its process is alive. */
export async function answersWhileAlive(mark: ProcessMark, probe: () => Promise<unknown>): Promise<boolean> {
  let answered = false;
  await until(async () => {
    if (!(await isAlive(mark))) return true;
    answered = await succeeds(probe());
    return answered;
  }, ANSWER_MS);
  return answered;
}

/** Returns once it answers. @throws ServiceMissing with the end of its log if it exits or stays silent */
export async function startService(start: ServiceStart): Promise<ProcessMark> {
  const { home, name, address, timeoutMs } = start;
  const log = toLogPath(home, name);
  const entryOf = (mark: ProcessMark): RunningService => ({ ...mark, address, log, ...start.facts });
  // Recorded before it runs: an interrupted set-up can still end it.
  const mark = await launch({ ...start, log }, (started) =>
    remember(home, start.comesUpAs ?? name, entryOf(started)),
  );
  const failed = (what: string) =>
    new ServiceMissing({
      service: start.title,
      address,
      problem: "did not start",
      reason: `it ${what}; its log ends with: ${tail(log, 3)}`,
      fix: `See ${log}, or ${start.otherwise}.`,
    });
  const answered = await until(async () => {
    if (!(await isAlive(mark))) throw failed("exited");
    return succeeds(start.probe(mark));
  }, timeoutMs);
  if (!answered) {
    if (start.comesUpAs !== undefined) await endProcess(mark, { graceMs: 1_000 });
    throw failed(`did not answer within ${timeoutMs / 1_000} s`);
  }
  remember(home, name, entryOf(mark));
  if (start.comesUpAs !== undefined) remember(home, start.comesUpAs, undefined);
  return mark;
}
