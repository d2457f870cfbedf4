/** What client, worker and tests hand to Temporal, so that all refuse the same payloads. */
import { fileURLToPath } from "node:url";

export const payloadConverterPath = fileURLToPath(new URL("./payload-guard.ts", import.meta.url));

export const dataConverter = { payloadConverterPath } as const;

/** Inside the workflow: the same, but what comes from outside and cannot be decoded fails no workflow task. */
export const workflowPayloadConverterPath = fileURLToPath(new URL("./workflow-payloads.ts", import.meta.url));
