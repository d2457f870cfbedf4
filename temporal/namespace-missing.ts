/** How Temporal says that it lacks a namespace. Imports nothing: each start of the client loads this. */

/** gRPC's NOT_FOUND, used for many kinds of objects. */
const GRPC_NOT_FOUND = 5;

/** Whether Temporal reports that it has no such namespace, as a starting server does. */
export function isNamespaceMissing(status: { readonly code?: unknown; readonly details?: unknown }): boolean {
  return status.code === GRPC_NOT_FOUND && /^namespace\b.*\bnot found/i.test(String(status.details));
}

/** Whether an error or one of its causes says so. */
export function lacksNamespace(error: unknown): error is Error {
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if (isNamespaceMissing(inner as { code?: unknown })) return true;
  return false;
}
