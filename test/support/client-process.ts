/** The client as a process, as a person starts it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { clientArgs } from "./program.ts";

export interface ClientProcess {
  /** Its output so far. */
  out(): string;
  err(): string;
  /** @returns its exit code */
  ended(): Promise<number | null>;
  kill(): void;
}

export function startClient(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): ClientProcess {
  let out = "";
  let err = "";
  const child = spawn(process.execPath, clientArgs(words), {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const exited = once(child, "exit");
  return {
    out: () => out,
    err: () => err,
    ended: async () => {
      await exited;
      return child.exitCode;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}
