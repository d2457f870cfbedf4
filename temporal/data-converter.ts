/** The data converter of client, worker and tests, so that all refuse the same payloads and encrypt with the same keys. */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { DataConverter } from "@temporalio/common";
import { createCodec, type CodecKey } from "./codec.ts";

/** `.ts` here, `.js` in the library that is built for consumers. */
const extension = extname(fileURLToPath(import.meta.url));
const at = (name: string) => fileURLToPath(new URL(`./${name}${extension}`, import.meta.url));

export const payloadConverterPath = at("payload-guard");

/** The converter inside the workflow: a payload from outside that cannot be decoded does not fail the workflow task. */
export const workflowPayloadConverterPath = at("workflow-payloads");

/** Used only with keys: without them it would merely hide texts from the Web UI. */
export const encodedFailuresPath = at("encoded-failures");

/** @param keys the first encrypts; without any, nothing is encrypted */
export function dataConverterOf(keys: readonly CodecKey[]): DataConverter {
  return {
    payloadConverterPath,
    payloadCodecs: [createCodec(keys)],
    ...(keys.length === 0 ? {} : { failureConverterPath: encodedFailuresPath }),
  };
}

export const dataConverter = dataConverterOf([]);
