/** Shows the worker's log while `longhaul up` is in the foreground. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive } from "./processes.ts";
import { projectHome, type Say } from "./services.ts";
import { logOf } from "./start-service.ts";
import { readState } from "./state.ts";
import { readableLine } from "./readable-line.ts";

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
      // None at all: another `down` ended it.
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
