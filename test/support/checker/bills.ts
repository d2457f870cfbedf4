/** I6: each kept answer is billed once, as the model billed it; every other request is listed as wasted. */
import { forkedAt, metaOf, placeOf, type BillRow, type Evidence } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

export function* checkBills(evidence: Evidence): Iterable<Violation> {
  yield* answers(evidence);
  yield* againstModel(evidence);
  yield* total(evidence);
}

const violation = violationOf("I6");

/** Each whole answer has one kept bill, with the usage stored in the answer. */
function* answers({ bills, messages }: Evidence): Iterable<Violation> {
  const keptBills = bills.filter((bill) => bill.status === "kept" && bill.purpose === "step");
  const forkSequence = forkedAt({ messages });
  const whole = messages.filter(
    (row) => row.slot === "assistant" && row.sequence > forkSequence && metaOf(row).finish !== "interrupted",
  );
  for (const row of whole) {
    const mine = keptBills.filter((bill) => bill.epoch === row.epoch && bill.step === row.step);
    if (mine.length !== 1) yield violation(placeOf(row), "one kept bill", `${mine.length}`);
    const usage = metaOf(row).usage;
    if (usage && mine[0] && (mine[0].inputTokens !== usage.input || mine[0].outputTokens !== usage.output))
      yield violation(placeOf(row), `a bill of ${usage.input} in, ${usage.output} out`, figures(mine[0]));
  }
  if (keptBills.length > whole.length)
    yield violation("model_calls", `${whole.length} kept bills of steps`, `${keptBills.length}`);
}

/** The kept bills are among the model's own, and the number of the others equals the number of wasted ones. */
function* againstModel({ bills, served, kills }: Evidence): Iterable<Violation> {
  if (served === undefined) return;
  const paid = served.filter((entry) => entry.status === 200);
  const open = countsOf(
    paid.map(({ usage }) =>
      usage ? key(usage.input, usage.cached, usage.output, usage.reasoning) : key(null, null, null, null),
    ),
  );
  for (const bill of bills.filter(({ status }) => status === "kept")) {
    const mine = key(bill.inputTokens, bill.cachedTokens, bill.outputTokens, bill.reasoningTokens);
    const unmatched = open.get(mine) ?? 0;
    if (unmatched === 0)
      yield violation(billPlace(bill), "an answer of the model with this bill", figures(bill));
    else open.set(mine, unmatched - 1);
  }
  const rest = [...open.values()].reduce((sum, count) => sum + count, 0);
  const wasted = bills.filter((bill) => bill.status === "wasted").length;
  if (rest > wasted + kills)
    yield violation(
      "model_calls",
      `at most ${wasted} wasted and ${kills} lost with a worker`,
      `${rest} answers of the model that were not kept`,
    );
}

/** Begins the error of such a bill. */
const DROPPED = "Another attempt or run had gone on";

/** The cost in the session's end is the sum of its bills up to then. */
function* total({ bills, events }: Evidence): Iterable<Violation> {
  const ended = events.findLast((event) => event.type === "session:ended");
  if (!ended) return;
  const { usage } = ended.data as { usage: { input: number; output: number; calls: number } };
  const before = bills.filter((bill) => bill.createdAt <= ended.at);
  // The bill of an answer that was dropped may have replaced an estimate since.
  const known = before.filter(({ error }) => error === null || !error.startsWith(DROPPED));
  const sumOf = (some: readonly BillRow[]) => {
    const sum = (of: (bill: BillRow) => number | null) =>
      some.reduce((all, bill) => all + (of(bill) ?? 0), 0);
    return { input: sum((bill) => bill.inputTokens), output: sum((bill) => bill.outputTokens) };
  };
  const fits = (some: readonly BillRow[]) => {
    const { input, output } = sumOf(some);
    return usage.input === input && usage.output === output;
  };
  if ((fits(before) || fits(known)) && usage.calls === before.length) return;
  const { input, output } = sumOf(before);
  yield violation(
    `event ${ended.seq} (session:ended)`,
    `${input} in, ${output} out, ${before.length} calls`,
    `${usage.input} in, ${usage.output} out, ${usage.calls} calls`,
  );
}

function key(...usage: (number | null)[]): string {
  return usage.map((tokens) => tokens ?? "-").join(" ");
}

function figures(bill: BillRow): string {
  return `${bill.inputTokens} in, ${bill.cachedTokens} cached, ${bill.outputTokens} out, ${bill.reasoningTokens} reasoning`;
}

function billPlace(bill: BillRow): string {
  return `model call ${bill.id} (epoch ${bill.epoch}, step ${bill.step}, ${bill.purpose})`;
}
