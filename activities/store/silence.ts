/** Ends a connection whose query is not answered: Postgres hangs, or the network drops what is sent. */
import type { Socket } from "node:net";
import type pg from "pg";

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
