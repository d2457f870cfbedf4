/** Ends a connection whose question is not answered: Postgres hangs, or the network swallows what is sent. */
import type { Socket } from "node:net";
import type pg from "pg";

/**
 * The driver's own timeout of a query would give up the query and leave its connection in the pool, waiting for the
 * answer; and TCP alone takes a quarter of an hour to notice. A transaction that rests, as while a sandbox is made, is not
 * silence. Recognised by two looks in a row, so that a process that was stopped itself reads first what came meanwhile.
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

/** For one use of a connection whose answer may take as long as it likes. */
export function allowSilence(client: pg.PoolClient): void {
  socketOf(client).setTimeout(0);
}

function socketOf(client: pg.PoolClient): Socket {
  return client.connection.stream as Socket;
}
