/** Shows the worker's log while `longhaul up` is in the foreground. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { cutChars } from "../../activities/contract/cut-text.ts";
import { isAlive } from "./processes.ts";
import { projectHome, type Say } from "./services.ts";
import { logOf } from "./start-service.ts";
import { readState } from "./state.ts";

const LOOK_MS = 500;
const READ_BYTES = 65_536;

/**
 * Prints the worker's new log lines, even after another one replaces it, until SIGINT or SIGTERM.
 * @returns true if it ended by itself
 */
export async function followWorker({
  home = projectHome,
  say,
}: {
  readonly home?: string;
  readonly say: Say;
}): Promise<boolean> {
  const asked = new AbortController();
  const onSignal = () => asked.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  const file = openSync(logOf(home, "worker"), "r");
  let [at, rest] = [fstatSync(file).size, ""];
  const bytes = Buffer.alloc(READ_BYTES);
  const read = () => {
    for (;;) {
      const count = readSync(file, bytes, 0, READ_BYTES, at);
      if (count === 0) return;
      at += count;
      const lines = (rest + bytes.toString("utf8", 0, count)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") say(readableLine(line));
    }
  };
  try {
    while (!asked.signal.aborted) {
      read();
      const { worker } = readState(home).services;
      // No worker is recorded: `down` in another process ended it.
      if (worker === undefined) return false;
      if (!(await isAlive(worker))) {
        say(`The worker has ended. Its log: ${worker.log}`);
        return true;
      }
      await sleep(LOOK_MS, undefined, { signal: asked.signal }).catch(() => undefined);
    }
    return false;
  } finally {
    closeSync(file);
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

/** A level of pino, whose levels are numbers. */
const WARN = 40;
const ERROR = 50;
const MAX_FIELD_CHARS = 200;
/** Fields that are the same in every line. */
const USUAL = new Set(["level", "time", "pid", "hostname", "name", "msg", "from"]);

/** Such as `10:02:07  warning: Postgres does not answer  attempt 3`; a line that is not JSON is unchanged. */
export function readableLine(line: string): string {
  let entry: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed !== "object" || parsed === null) return line;
    entry = parsed as Record<string, unknown>;
  } catch {
    return line;
  }
  const level = Number(entry["level"]);
  const lesser = level >= WARN ? "warning: " : "";
  const kind = level >= ERROR ? "error: " : lesser;
  const time = new Date(String(entry["time"]));
  const clock = Number.isNaN(time.getTime()) ? "" : `${time.toTimeString().slice(0, 8)}  `;
  const fields = Object.entries(entry)
    .filter(([name]) => !USUAL.has(name))
    .map(([name, value]) => `  ${name} ${cutChars(wordsOf(value), MAX_FIELD_CHARS)}`);
  return `${clock}${kind}${wordsOf(entry["msg"])}${fields.join("")}`;
}

function wordsOf(value: unknown): string {
  if (typeof value === "string") return value;
  const { message } = (value ?? {}) as { message?: unknown };
  return typeof message === "string" ? message : (JSON.stringify(value) ?? "");
}
