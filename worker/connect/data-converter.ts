/** What client, worker and tests hand to Temporal, so that all refuse the same payloads. */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** `.ts` here, `.js` in the library that is built for consumers. */
const extension = extname(new URL(import.meta.url).pathname);

export const payloadConverterPath = fileURLToPath(new URL(`./payload-guard${extension}`, import.meta.url));

export const dataConverter = { payloadConverterPath } as const;

/** Inside the workflow: the same, but what comes from outside and cannot be decoded fails no workflow task. */
export const workflowPayloadConverterPath = fileURLToPath(
  new URL(`./workflow-payloads${extension}`, import.meta.url),
);
