/**
 * After a failover, every connection of the pool leads to a server that is gone or only reads. The first query that notices closes them
 * all and is repeated at once on a new one, where that cannot do anything twice; the others get a new one anyway.
 */
import type pg from "pg";
import { isNetworkCode, isQueryError } from "../contract/errors.ts";
import type { Socket } from "node:net";

/** Of the Postgres driver, for a connection that was lost, not established in time, or out of step with the server: they have no code. */
const WORDS =
  /^(Connection terminated|timeout e(xceeded when trying to connect|xpired)|Client (was closed|has encountered a connection error)|Cannot use a pool after calling end|Query read timeout|Received unexpected \w+ message from backend|There was an error establishing an SSL connection)/;

export const isConnectionLost = (error: Error): boolean => WORDS.test(error.message);

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
    const roundBefore = round;
    try {
      return await body();
    } catch (error) {
      if (!isOfConnection(error)) throw error;
      // Of several queries that notice it, the first closes what was open.
      if (roundBefore === round) round += 1;
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
    return onceMore(ask, (error) => isAsked && (READS.test(text) || databaseCode(error) === READ_ONLY));
  }

  Object.assign(pool, { connect, query });
  return { onceMore };
}

/** Whether the connection, and those opened with it, would refuse the next query, too. Says nothing of other errors' causes. */
export function isOfConnection(error: unknown): boolean {
  const inner = driverError(error);
  if (!(inner instanceof Error)) return false;
  const code = databaseCode(inner);
  return USELESS.test(code) || isNetworkCode(code) || isConnectionLost(inner);
}

const driverError = (error: unknown): unknown =>
  isQueryError(error) && error instanceof Error ? error.cause : error;

/** Postgres's or the network's code of an error; "" if it has none. */
export function databaseCode(error: unknown): string {
  const inner = driverError(error);
  const code = inner instanceof Error && "code" in inner ? inner.code : undefined;
  return typeof code === "string" ? code : "";
}

/**
 * The driver's own query timeout would abandon the query but leave its connection in the pool, waiting for the answer; and
 * TCP alone takes a quarter of an hour to notice. An idle transaction, as while a sandbox is created, is not silence. Two
 * checks in a row must find silence, so that a process that was itself stopped first reads what arrived meanwhile.
 */
export function endSilentConnections(pool: pg.Pool, silenceMs: number): void {
  const halfMs = Math.ceil(silenceMs / 2);
  pool.on("connect", (client) => {
    const socket = socketOf(client);
    let answeredAt = socket.bytesWritten;
    client.on("drain", () => (answeredAt = socket.bytesWritten));
    let readAtLook = -1;
    socket.on("timeout", () => {
      const isAsked = socket.bytesWritten > answeredAt;
      if (isAsked && socket.bytesRead === readAtLook) {
        socket.destroy(new Error(`Connection terminated: no answer in ${silenceMs} ms`));
        return;
      }
      readAtLook = isAsked ? socket.bytesRead : -1;
      socket.setTimeout(halfMs);
    });
  });
  pool.on("acquire", (client) => socketOf(client).setTimeout(halfMs));
  pool.on("release", (_error, client) => socketOf(client).setTimeout(0));
}

/** Disables the limit for one use of a connection, for an answer that may take any time. */
export function allowSilence(client: pg.PoolClient): void {
  socketOf(client).setTimeout(0);
}

function socketOf(client: pg.PoolClient): Socket {
  return client.connection.stream as Socket;
}
