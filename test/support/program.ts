/** How tests start the real program: like `npx longhaul`, which keeps compiled code from one start to the next. */
import { fileURLToPath } from "node:url";

const QUICK_START = new URL("../../scripts/quick-start.mjs", import.meta.url).href;
const CLIENT = fileURLToPath(new URL("../../client/main.ts", import.meta.url));
const WORKER = fileURLToPath(new URL("../../worker/main.ts", import.meta.url));

/** Node's arguments for the client. */
export const clientArgs = (words: readonly string[]) => ["--import", QUICK_START, CLIENT, ...words];

/** Node's arguments for the worker. */
export const workerArgs = () => ["--import", QUICK_START, WORKER];
