/** I5: requests grow by appending, except if a compaction, a prune or a new epoch changed them. */
import { isSummaryRequest } from "../scripted-summaries.ts";
import type { ParsedRequest } from "../model-server/wire.ts";
import type { Evidence } from "./evidence.ts";
import { type Violation, violationOf } from "./violation.ts";

/** Clock skew of Postgres and the model server, plus the time until a change is stored. */
const SLACK_MS = 2_000;

interface Asked {
  readonly number: number;
  readonly at: number;
  readonly request: ParsedRequest;
}

export function* checkPrompts(evidence: Evidence): Iterable<Violation> {
  const requests = (evidence.served ?? []).flatMap((entry, index): Asked[] =>
    entry.request === undefined || isSummaryRequest(entry.request)
      ? []
      : [{ number: index + 1, at: entry.receivedAt, request: entry.request }],
  );
  const changes = changesOf(evidence);
  for (const [index, next] of requests.entries()) {
    const before = requests[index - 1];
    if (before === undefined) continue;
    if (before.request.system !== next.request.system)
      yield violation(next, `the system prompt of request ${before.number}`, "another one");
    const difference = firstDifference(before.request, next.request);
    if (difference === undefined) continue;
    const explained = changes.some(
      (at) => at === undefined || (at >= before.at - SLACK_MS && at <= next.at + SLACK_MS),
    );
    if (!explained)
      yield violation(
        next,
        `the ${before.request.items.length} entries of request ${before.number} in front`,
        `another entry ${difference + 1}: ${excerpt(next.request.items[difference])} for ${excerpt(before.request.items[difference])}`,
      );
  }
}

const violation = ({ number }: Asked, expected: string, found: string): Violation =>
  violationOf("I5")(`request ${number}`, expected, found);

/** When the view may have changed other than by growing; undefined if the time is not stored. */
function changesOf({ rounds, events, runs }: Evidence): (number | undefined)[] {
  return [
    ...rounds.filter((round) => round.status !== "failed").map((round) => round.createdAt.getTime()),
    ...rounds.filter((round) => round.status === "undone").map(() => undefined),
    ...events.filter((event) => event.type === "record:missing").map((event) => event.at.getTime()),
    ...events.filter((event) => event.type === "context:pruned").map((event) => event.at.getTime()),
    ...runs
      .filter((run, index) => index > 0 && run.epoch > (runs[index - 1]?.epoch ?? 1))
      .map((run) => run.startedAt.getTime()),
  ];
}

function firstDifference(before: ParsedRequest, next: ParsedRequest): number | undefined {
  const position = before.items.findIndex(
    (item, index) => JSON.stringify(item) !== JSON.stringify(next.items[index]),
  );
  return position === -1 ? undefined : position;
}

function excerpt(item: unknown): string {
  return item === undefined ? "nothing" : JSON.stringify(item).slice(0, 160);
}
