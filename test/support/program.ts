/** How tests start the real program: like `npm run longhaul --`, which keeps compiled code from one start to the next. */
import { spawn } from "node:child_process";
import { once } from "node:events";
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
export const clientArgs = (args: readonly string[], folder = PROJECT) => [
  ...started(folder, "client/main.ts"),
  ...args,
];

/** Node's arguments for the worker. */
export const workerArgs = (folder = PROJECT) => started(folder, "worker/main.ts");

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Started {
  /** Its output so far. */
  readonly out: () => string;
  readonly err: () => string;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Closes the reader's end of its standard output, as `| head` does. */
  readonly closeOutput: () => void;
  readonly ended: Promise<Ended>;
}

/** Starts a program, which reads `input`. */
export function spawned(
  program: string,
  args: readonly string[],
  {
    cwd,
    env,
    input = "",
  }: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv; readonly input?: string },
): Started {
  let out = "";
  let err = "";
  const child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  return {
    out: () => out,
    err: () => err,
    kill: (signal) => void child.kill(signal),
    closeOutput: () => child.stdout.destroy(),
    ended: once(child, "close").then(() => ({ code: child.exitCode, out, err })),
  };
}

/** The client as a process, as a person starts it. */
export const startClient = (
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Started =>
  spawned(process.execPath, clientArgs(args), {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...environment },
  });
