/**
 * Messages of the Postgres driver for a connection that was lost, not established in time, or out of step with the server: these errors
 * have no code.
 */

const WORDS =
  /^(Connection terminated|timeout e(xceeded when trying to connect|xpired)|Client (was closed|has encountered a connection error)|Cannot use a pool after calling end|Query read timeout|Received unexpected \w+ message from backend|There was an error establishing an SSL connection)/;

export const isConnectionLost = (error: Error): boolean => WORDS.test(error.message);
