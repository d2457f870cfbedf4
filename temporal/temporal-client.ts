/** Creates every client of Temporal, so that all use the same payload encoding. */
import { Client, type ConnectionLike } from "@temporalio/client";
import type { CodecKey } from "./codec.ts";
import { dataConverterOf } from "./data-converter.ts";

export function temporalClient(
  { connection, namespace }: { readonly connection: ConnectionLike; readonly namespace: string },
  keys: readonly CodecKey[] = [],
): Client {
  return new Client({ connection, namespace, dataConverter: dataConverterOf(keys) });
}
