/** Why a connection failed, as people read it. Pure. */
import { innermostReason } from "../activities/contract/errors.ts";

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the other side closed the connection",
  EPIPE: "the other side closed the connection",
  ENOTFOUND: "there is no host of this name",
  ETIMEDOUT: "there was no answer in time",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
};

/** The system's code stays visible, so that it can be searched for; any other reason is the innermost message. */
export function plainReason(error: unknown): string {
  // gRPC begins a message with its status, such as `14 UNAVAILABLE: `.
  const reason = innermostReason(error).replace(/^\d+ [A-Z_]+: /, "");
  const code = Object.keys(WORDS).find((name) => new RegExp(String.raw`\b${name}\b`).test(reason));
  return code === undefined ? reason : `${WORDS[code]}, ${code}`;
}
