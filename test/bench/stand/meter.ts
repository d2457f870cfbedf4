/** What a worker's process spends: processor, memory, statements sent to Postgres, time in each activity. */
import pg from "pg";
import { now } from "./channel.ts";

export interface Usage {
  /** User and system time of all threads, in ms. */
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/** Something that took time: a statement by its first words, an activity or the model by its name. */
export interface Span {
  readonly kind: "sql" | "activity" | "model" | "tool";
  readonly name: string;
  readonly at: number;
  readonly ms: number;
}

const spans: Span[] = [];
/** Transactions that ended: statements that were one by themselves, and the ends of those that were not. */
let transactions = 0;
const inTransaction = new WeakSet<object>();

function record(kind: Span["kind"], name: string, began: number): void {
  spans.push({ kind, name, at: began, ms: now() - began });
}

/** Runs `body` and notes how long it took, whatever came of it. */
export async function timed<T>(kind: Span["kind"], name: string, body: () => Promise<T>): Promise<T> {
  const began = now();
  try {
    return await body();
  } finally {
    record(kind, name, began);
  }
}

function countTransaction(client: object, statement: string): void {
  const [word] = statement.split(" ");
  if (word === "begin") inTransaction.add(client);
  if (word === "commit" || word === "rollback") inTransaction.delete(client);
  if (!inTransaction.has(client)) transactions += 1;
}

type Callback = (...args: unknown[]) => void;

/** From here on each statement of this process is noted, whatever sends it: pool, transaction, migration. */
export function watchStatements(): void {
  const client = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
  const query = client.query;
  client.query = function watched(this: object, ...args: unknown[]) {
    const began = now();
    const name = nameOf(args[0]);
    countTransaction(this, name);
    const last = args.at(-1);
    if (typeof last === "function") {
      const done = last as Callback;
      args[args.length - 1] = (...results: unknown[]) => {
        record("sql", name, began);
        done(...results);
      };
      return query.apply(this, args);
    }
    const answer = query.apply(this, args);
    if (answer instanceof Promise)
      void answer.finally(() => record("sql", name, began)).catch(() => undefined);
    return answer;
  };
}

/** What a statement does to which table; both are recognised by the first that is written or read. */
function nameOf(asked: unknown): string {
  const text = typeof asked === "string" ? asked : ((asked as { text?: string } | null)?.text ?? "?");
  if (text.includes("pg_notify")) return "notify";
  const written = /\b(insert into|update|delete from) "?(?!cursors)([a-z_]+)"?/i.exec(text);
  if (written !== null) return `${written[1]?.split(" ")[0]?.toLowerCase() ?? ""} ${written[2] ?? ""}`;
  const read = /^\s*(\w+)(?:[\s\S]*?\bfrom "?([a-z_]+)"?)?/i.exec(text);
  return `${read?.[1]?.toLowerCase() ?? "?"} ${read?.[2] ?? ""}`.trim();
}

export const meterVerbs = {
  /** @param collect garbage first, so that memory is what is held */
  usage: (collect = false): Usage => {
    if (collect) for (let time = 0; time < 3; time += 1) globalThis.gc?.();
    const { user, system } = process.cpuUsage();
    return { cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss() };
  },
  transactions: () => transactions,
  /** All that was noted since the last time this was asked. */
  spans: (): Span[] => spans.splice(0),
};
