/** Services that became unavailable: their errors, told from all others, and effects whose answer was lost with them. */
import { isNetworkCode, passes } from "../../activities/contract/errors.ts";
import { isConnectionLost } from "../../activities/store/connections.ts";
import {
  isNamespaceMissing,
  ServiceMissing,
  plainReason,
  WrongSettings,
} from "../../temporal/service-missing.ts";
import { missing, notPossible, usageError, ClientError } from "../console/errors.ts";

/** Postgres: insufficient privilege; also used when a row policy refuses access. */
const NOT_ALLOWED = "42501";
/** gRPC: permission denied, unimplemented, unauthenticated. Temporal knows who asks, or what for, and will not do it. */
const GRPC_REFUSALS: ReadonlySet<unknown> = new Set([7, 12, 16]);

/** The error in the client's words, or undefined if no service or right is missing and the worker's settings are valid. */
export function missingServiceOf(error: unknown): ClientError | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (inner instanceof WrongSettings) return usageError(inner.message);
    if (inner instanceof ServiceMissing)
      return missing(inner.message, "`longhaul doctor` shows what is found and what is missing.", error);
    if (inner.name === "EngineSettingWrong")
      return missing(
        `No Docker engine can be reached: ${inner.message}.`,
        "`docker version` in the same shell shows whether the setting is right.",
        error,
      );
    // Compared by name: loading Temporal's client for its class would take a third of each start, even of `--help`.
    if (inner.name === "NamespaceNotFoundError" || isNamespaceMissing(inner as { code?: unknown }))
      return missing(
        `Temporal does not have the namespace that this client uses: ${inner.message}`,
        "If the server is starting, try again in a few seconds. Otherwise correct TEMPORAL_NAMESPACE.",
        error,
      );
    const code = (inner as { code?: unknown }).code;
    if (code === NOT_ALLOWED)
      return notPossible(
        `Your role in Postgres may not do that: ${inner.message}.`,
        "Only the operator may delete, purge, log in to MCP servers, keep repositories warm, or see other people's sessions. If a table of another version is missing, a worker of that version creates it.",
      );
    const lostName = lostStore(inner, typeof code === "string" ? code : "");
    if (lostName !== undefined)
      return missing(
        `${lostName}: ${plainReason(inner)}`,
        "`longhaul doctor` shows what is missing; the task itself continues.",
        error,
      );
    if (GRPC_REFUSALS.has(code))
      return missing(
        `Temporal refuses: ${plainReason(inner)}`,
        "Check the key or certificate of this client, and what it may do in that namespace (TEMPORAL_…).",
        error,
      );
    if (typeof code === "number" && passes.grpc(code, inner.message)) {
      return missing(
        `Temporal does not answer: ${plainReason(inner)}`,
        "Check TEMPORAL_ADDRESS; `longhaul doctor` shows what is missing.",
        error,
      );
    }
  }
  return undefined;
}

/** What became of a connection, or of Postgres behind it, for what passes or an operator corrects. */
function lostStore(error: Error, code: string): string | undefined {
  if (isNetworkCode(code) || isConnectionLost(error) || /^(08|57)\w{3}$/.test(code))
    return "A connection was lost";
  if (!/^[0-9A-Z]{5}$/.test(code) || !passes.postgres(code)) return undefined;
  return /^(28|3D)/.test(code) ? "Postgres refuses" : "Postgres cannot do that now";
}

/** An effect in Temporal whose answer may be lost: Temporal is asked what became of it. */
interface Effect<T> {
  readonly make: () => Promise<T>;
  /** What Temporal has of it; undefined if it was not made. */
  readonly find: () => Promise<T | undefined>;
  /** Such as `it started the session`. */
  readonly what: string;
  /** What to do if Temporal does not say so either. Doing it all again must be safe. */
  readonly again: string;
}

/**
 * Makes the effect. A failure is not a no: whatever it was, Temporal is asked before it counts.
 * @throws ClientError (missing) if Temporal does not say what became of it; else the failure, and nothing was made
 */
export async function settled<T>({ make, find, what, again }: Effect<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof ClientError) throw error;
    const answer = await find().catch((unanswered: unknown) => {
      throw missing(`Temporal did not say whether ${what} (${plainReason(unanswered)}).`, again, error);
    });
    if (answer === undefined) throw error;
    return answer;
  }
}
