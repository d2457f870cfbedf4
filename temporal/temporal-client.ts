/** Connects to Temporal, and creates every client of it, so that all use the same payload encoding. */
import {
  Client,
  type ConnectionLike,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type GrpcRetryOptions,
} from "@temporalio/client";
import { type CodecKey, createDataConverter } from "./codec.ts";
import type { TemporalConnection } from "./connection.ts";
import { isNamespaceMissing } from "./service-missing.ts";

export function temporalClient(
  { connection, namespace }: { readonly connection: ConnectionLike; readonly namespace: string },
  keys: readonly CodecKey[] = [],
): Client {
  return new Client({ connection, namespace, dataConverter: createDataConverter(keys) });
}

/** A starting server answers before its namespaces exist; exit code 4 must be reported within 10 s. */
const NAMESPACE_TRIES = 2;
const NAMESPACE_RETRY_MS = 1_000;

const usualRetries = defaultGrpcRetryOptions();

/** The SDK's retries, extended to a namespace that does not exist (yet). */
export const retries: GrpcRetryOptions = {
  delayFunction: (attempt, status) =>
    isNamespaceMissing(status) ? NAMESPACE_RETRY_MS : usualRetries.delayFunction(attempt, status),
  retryableDecider: (attempt, status) =>
    isNamespaceMissing(status) ? attempt < NAMESPACE_TRIES : usualRetries.retryableDecider(attempt, status),
};

/** Connects within a time that a waiting person accepts. @throws Error if no server answers within it */
export function connectTemporal(
  options: TemporalConnection["connection"],
  timeoutMs: number,
): Promise<Connection> {
  return Connection.connect({
    ...options,
    connectTimeout: timeoutMs,
    interceptors: [makeGrpcRetryInterceptor(retries)],
  });
}
