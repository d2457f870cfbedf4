/** What a worker's process spends: processor, memory, transactions in Postgres, time in each activity. */
import pg from "pg";
import { now } from "./channel.ts";

/** Something that took time: an activity or the model by its name. */
export interface Span {
  readonly kind: "activity" | "model";
  readonly name: string;
  readonly at: number;
  readonly ms: number;
}

const spans: Span[] = [];
/** Transactions that ended: statements that were one by themselves, and the ends of those that were not. */
let transactions = 0;
const inTransaction = new WeakSet<object>();

/** Runs `body` and notes how long it took, whatever its outcome. */
export async function timed<T>(kind: Span["kind"], name: string, body: () => Promise<T>): Promise<T> {
  const began = now();
  try {
    return await body();
  } finally {
    spans.push({ kind, name, at: began, ms: now() - began });
  }
}

/** From here on each transaction of this process is counted, whatever sends it: pool, migration. */
export function countTransactions(): void {
  const client = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
  const query = client.query;
  client.query = function counted(this: object, ...args: unknown[]) {
    const [asked] = args;
    const text = typeof asked === "string" ? asked : ((asked as { text?: string } | null)?.text ?? "");
    const word = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase();
    if (word === "begin") inTransaction.add(this);
    if (word === "commit" || word === "rollback") inTransaction.delete(this);
    if (!inTransaction.has(this)) transactions += 1;
    return query.apply(this, args);
  };
}

export const meterVerbs = {
  /** User and system time of all threads. @param collect garbage first, so that memory is what is held */
  usage: (collect = false) => {
    if (collect) for (let time = 0; time < 3; time += 1) globalThis.gc?.();
    const { user, system } = process.cpuUsage();
    return { cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss() };
  },
  transactions: () => transactions,
  /** All that was noted since the last time this was asked. */
  spans: (): Span[] => spans.splice(0),
};
