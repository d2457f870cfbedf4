/** Connects to Temporal within a time that a waiting person accepts. */
import {
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type GrpcRetryOptions,
} from "@temporalio/client";
import type { TemporalConnection } from "../../temporal/temporal-connection.ts";
import { isNamespaceMissing } from "../../temporal/namespace-missing.ts";

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

/** @throws Error if no server answers within the time */
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
