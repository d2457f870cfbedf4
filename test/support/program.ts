/** How a test starts the real program: as `npx longhaul` does, which keeps compiled code from one start to the next. */
import { fileURLToPath } from "node:url";

const QUICK_START = new URL("../../scripts/quick-start.mjs", import.meta.url).href;

/** Node's arguments for the client. */
export const clientArgs = (words: readonly string[]): string[] => ofMain("client", words);

/** Node's arguments for the worker. */
export const workerArgs = (): string[] => ofMain("worker", []);

function ofMain(name: "client" | "worker", words: readonly string[]): string[] {
  const main = fileURLToPath(new URL(`../../${name}/main.ts`, import.meta.url));
  return ["--import", QUICK_START, main, ...words];
}
