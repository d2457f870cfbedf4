/** What client, worker and tests hand to Temporal, so that all refuse the same payloads and encrypt with the same keys. */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { DataConverter } from "@temporalio/common";
import { createCodec, type CodecKey } from "./codec.ts";

/** `.ts` here, `.js` in the library that is built for consumers. */
const extension = extname(new URL(import.meta.url).pathname);
const at = (name: string) => fileURLToPath(new URL(`./${name}${extension}`, import.meta.url));

export const payloadConverterPath = at("payload-guard");

/** Inside the workflow: the same, but outside payloads that cannot be decoded fail no workflow task. */
export const workflowPayloadConverterPath = at("workflow-payloads");

/** Only with keys: without, it would hide texts from the Web UI alone. */
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
