/**
 * After a failover, every connection of the pool leads to a server that is gone or only reads. The first query that notices closes them
 * all and is repeated at once on a new one, where that cannot do anything twice; the others get a new one anyway.
 */
import type pg from "pg";
import { isNetworkCode, isQueryError } from "../contract/errors.ts";
import { isConnectionLost } from "./lost-connection.ts";

/** Another server took over and this one only reads. Whatever asked to write has written nothing. */
const READ_ONLY = "25006";
/** That, or the server ends or starts: no connection to it is of use. */
const USELESS = /^(25006|57P0[1-3]|08\w{3})$/;
/** A statement that may be made twice. */
const READS = /^\s*select\b/i;

export interface FreshConnections {
  /**
   * Runs `body`, and once more after an error of a connection that was of no use, if `mayRepeat` then says so. The second time every
   * connection is a new one.
   * @throws what `body` throws
   */
  onceMore<T>(body: () => Promise<T>, mayRepeat: (error: unknown) => boolean): Promise<T>;
}

/** Replaces `connect` and `query` of a pool, whose callers all wait for promises. */
export function withFreshConnections(pool: pg.Pool): FreshConnections {
  const opened = new WeakMap<pg.ClientBase, number>();
  let round = 0;
  pool.on("connect", (client) => void opened.set(client, round));
  const anyConnection: () => Promise<pg.PoolClient> = pool.connect.bind(pool);

  async function connect(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await anyConnection();
      if ((opened.get(client) ?? round) === round) return client;
      client.release(true);
    }
  }

  async function onceMore<T>(body: () => Promise<T>, mayRepeat: (error: unknown) => boolean): Promise<T> {
    const begun = round;
    try {
      return await body();
    } catch (error) {
      if (!isOfConnection(error)) throw error;
      // Of several queries that notice it, the first closes what was open.
      if (begun === round) round += 1;
      if (!mayRepeat(error)) throw error;
      return body();
    }
  }

  async function query(statement: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult> {
    const text = typeof statement === "string" ? statement : statement.text;
    let isAsked = false;
    const ask = async () => {
      isAsked = false;
      const client = await connect();
      isAsked = true;
      try {
        const result: pg.QueryResult = await client.query(statement, values);
        client.release();
        return result;
      } catch (error) {
        client.release(true);
        throw error;
      }
    };
    return onceMore(ask, (error) => isAsked && (READS.test(text) || codeOf(error) === READ_ONLY));
  }

  Object.assign(pool, { connect, query });
  return { onceMore };
}

/** Whether the connection, and those opened with it, would refuse the next query, too. Says nothing of other errors' causes. */
export function isOfConnection(error: unknown): boolean {
  const inner = isQueryError(error) && error instanceof Error ? error.cause : error;
  if (!(inner instanceof Error)) return false;
  const code = codeOf(inner);
  return USELESS.test(code) || isNetworkCode(code) || isConnectionLost(inner);
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
