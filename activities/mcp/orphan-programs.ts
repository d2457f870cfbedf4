/** Programs that a worker left behind when it was killed. */
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

/** Variable that names the worker in each of its programs and in what they start. */
export const PARENT = "LONGHAUL_PARENT";

/** A name for this process that is unique on the machine: its namespace, its id and its start time. */
export function parentMark(): string {
  return `${namespace()}.${process.pid}.${beginOf(process.pid) ?? "0"}`;
}

/**
 * Ends programs whose worker is gone. Needs `/proc`; on other systems they end by themselves when their input is closed.
 * @returns how many processes were ended
 */
export function endOrphanPrograms(): number {
  const own = namespace();
  let ended = 0;
  for (const name of list("/proc")) {
    const pid = Number(name);
    const mark = Number.isInteger(pid) ? markOf(pid) : undefined;
    const [space, parent = "", begun] = mark?.split(".") ?? [];
    if (mark === undefined || space !== own || beginOf(Number(parent)) === begun) continue;
    try {
      process.kill(pid, "SIGKILL");
      ended += 1;
    } catch {
      // The process has already ended.
    }
  }
  return ended;
}

function markOf(pid: number): string | undefined {
  const line = read(`/proc/${pid}/environ`)
    ?.split("\0")
    .find((variable) => variable.startsWith(`${PARENT}=`));
  return line?.slice(PARENT.length + 1);
}

/** A process's start time, in clock ticks; undefined if there is no such process. */
function beginOf(pid: number): string | undefined {
  // The process's name, in parentheses, may contain anything; the 22nd field is the 20th after it.
  return read(`/proc/${pid}/stat`)?.split(") ").at(-1)?.split(" ")[19];
}

function namespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replaceAll(/\D/g, "");
  } catch {
    return "0";
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
