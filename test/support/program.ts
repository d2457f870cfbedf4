/** How tests start the real program: like `npx longhaul`, which keeps compiled code from one start to the next. */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Where this project is. */
export const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

const started = (folder: string, program: string) => [
  "--import",
  pathToFileURL(join(folder, "scripts", "quick-start.mjs")).href,
  join(folder, program),
];

/** Node's arguments for the client. @param folder of the project, or of a clone of it */
export const clientArgs = (words: readonly string[], folder = PROJECT) => [
  ...started(folder, "client/main.ts"),
  ...words,
];

/** Node's arguments for the worker. */
export const workerArgs = (folder = PROJECT) => started(folder, "worker/main.ts");
