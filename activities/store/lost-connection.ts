/** Messages of the Postgres driver for a connection that was lost, or not established in time: these errors have no code. */

const WORDS =
  /^(Connection terminated|timeout exceeded when trying to connect|Client (was closed|has encountered a connection error)|Cannot use a pool after calling end|Query read timeout)/;

export const isConnectionLost = (error: Error): boolean => WORDS.test(error.message);
