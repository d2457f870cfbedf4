// One installation at a time: two `npm ci` in the same folder remove each other's files. Runs on plain Node 20.3, like setup.mjs.
import { appendFileSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Calls `install` while no other process holds the lock `file`, and reports once if it has to wait for that.
 * `install` gets a function that adds the id of a process that it starts to the lock. Others wait while one of these processes
 * lives, even if we were killed. A lock whose processes have all ended is taken over.
 */
export async function oneAtATime(file, say, install) {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  let hasSaid = false;
  while (!take(file)) {
    const holder = livingHolder(file);
    if (holder === undefined) {
      rmSync(file, { force: true });
      continue;
    }
    if (!hasSaid) say(`Waiting for another command (process ${holder}) to install the packages …`);
    hasSaid = true;
    await sleep(200);
  }
  try {
    return await install((pid) => appendFileSync(file, markOf(pid)));
  } finally {
    rmSync(file, { force: true });
  }
}

/** Creates the file complete with its holder, so that a lock without one is never read. */
function take(file) {
  const ownFile = `${file}.${process.pid}`;
  writeFileSync(ownFile, markOf(process.pid));
  try {
    linkSync(ownFile, file);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(ownFile, { force: true });
  }
}

/** A line for the lock. It includes the start time, because another process may reuse the id before it is read. */
function markOf(pid) {
  return `${pid} ${birthOf(pid) ?? "gone"}\n`;
}

function livingHolder(file) {
  let marks;
  try {
    marks = readFileSync(file, "utf8").trim().split("\n");
  } catch {
    // It has been released.
    return undefined;
  }
  return marks.map((mark) => mark.split(" ")).find(([pid, born = ""]) => birthOf(Number(pid)) === born)?.[0];
}

/** When a process began (only on Linux; elsewhere "alive"); undefined if it has ended or is a zombie. */
function birthOf(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== "EPERM") return undefined;
  }
  if (process.platform !== "linux") return "alive";
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain anything: fields are counted from its last bracket.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
