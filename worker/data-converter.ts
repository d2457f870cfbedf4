/** What client, worker and tests hand to Temporal, so that all refuse the same payloads. */
import { fileURLToPath } from "node:url";

export const payloadConverterPath = fileURLToPath(new URL("./payload-guard.ts", import.meta.url));

export const dataConverter = { payloadConverterPath } as const;
