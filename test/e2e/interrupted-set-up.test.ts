/** Ctrl-C at each line of set-up: everything that runs by then is recorded and named, and `down` ends it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { bringDown } from "../../client/setup/services.ts";
import { readState } from "../../client/setup/state.ts";
import { emptyFolder } from "../support/empty-folder.ts";

const PROGRAM = fileURLToPath(new URL("../support/set-up-process.ts", import.meta.url));
const QUICK_START = new URL("../../scripts/quick-start.mjs", import.meta.url).href;
/** More than the lines of set-up. */
const MAX_ROUNDS = 20;

/** Of the interrupted program. */
const LAST_LINE = "Everything is running.";

/** Without the parts that differ from start to start. */
const shapeOf = (line: string) => line.replaceAll(/\d+/g, "N");

/** Interrupts a set-up at its first new line, or when its worker is being started. */
async function interrupt(
  home: string,
  seen: Set<string>,
): Promise<{ code: number | null; at: string; out: string }> {
  const child = spawn(process.execPath, ["--import", QUICK_START, PROGRAM, home], {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], OPENAI_API_KEY: "sk-interrupted" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const left = readState(home).services["next-worker"];
  let [out, at] = ["", ""];
  const stop = (point: string) => {
    if (point === LAST_LINE && seen.has(point)) child.stdin.end();
    if (at !== "" || seen.has(point)) return;
    at = point;
    seen.add(point);
    child.kill("SIGINT");
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    for (const line of out.split("\n").slice(0, -1)) stop(shapeOf(line));
  });
  // One that an earlier round left says nothing of this one, which may not even receive signals yet.
  const looking = setInterval(() => {
    const coming = readState(home).services["next-worker"];
    if (coming !== undefined && coming.pid !== left?.pid) stop("(a worker comes up)");
  }, 5);
  await once(child, "close");
  clearInterval(looking);
  return { code: child.exitCode, at, out };
}

/**
 * Processes that name the folder in their arguments or environment. A child of one is its parent's: those of Postgres name the folder
 * from their fork until they have set their title.
 */
function processesOf(home: string): number[] {
  const found = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => ["cmdline", "environ"].some((file) => contentOf(`/proc/${pid}/${file}`).includes(home)));
  const parentOf = (pid: string) => /^PPid:\s*(\d+)/m.exec(contentOf(`/proc/${pid}/status`))?.[1] ?? "";
  return found.filter((pid) => !found.includes(parentOf(pid))).map(Number);
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It ended meanwhile.
    return "";
  }
}

it.skipIf(process.platform !== "linux")(
  "at each of its lines leaves nothing that is not known, and says what stays up",
  async () => {
    const home = emptyFolder();
    onTestFinished(async () => {
      await bringDown({ home, say: () => undefined });
    });
    const seen = new Set<string>();
    const table: string[] = [];
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      const { code, at, out } = await interrupt(home, seen);
      if (code === 0) break;
      expect(code, `at: ${at}\n${out}`).toBe(130);
      const known = Object.values(readState(home).services).map(({ pid }) => pid);
      const running = processesOf(home);
      expect(
        running.filter((pid) => !known.includes(pid)),
        `at: ${at}`,
      ).toEqual([]);
      const said = out.trim().split("\n").at(-1) ?? "";
      expect(said).toContain("Interrupted");
      for (const pid of running) expect(said).toContain(`(process ${pid})`);
      table.push(`${at} | ${said}`);
    }
    console.log(table.join("\n"));
    expect(seen).toContain("(a worker comes up)");
    expect(Object.keys(readState(home).services).toSorted()).toEqual(["postgres", "temporal", "worker"]);
    await bringDown({ home, say: () => undefined });
    expect(processesOf(home)).toEqual([]);
  },
  300_000,
);
