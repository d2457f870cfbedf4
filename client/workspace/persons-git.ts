/**
 * The person's own Git, with their settings, and without hooks, and its locks in their repository. Each lock that we make, or
 * let Git make, is announced in our own folder first, with what it will contain: so the next `apply` can tell the lock of a
 * killed one from that of another git, which is only named.
 */
import { quotedWord } from "../console/format.ts";
import { execFile } from "node:child_process";
import { notPossible } from "../console/errors.ts";
import {
  copyFileSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { until } from "../../temporal/patience.ts";
import { childEnvironment } from "../setup/processes.ts";

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const MAX_LINES = 20;

/** A person's checkout. */
export interface Checkout {
  readonly top: string;
  /** Of this working tree. */
  readonly gitFolder: string;
  /** What its working trees share. */
  readonly commonFolder: string;
  /** The current folder, from the top: empty or with a final `/`. */
  readonly prefix: string;
}

export interface Ended {
  readonly code: number;
  readonly out: Buffer;
  readonly err: string;
}

/**
 * It takes no lock only to remember what it saw.
 * @param index instead of the checkout's own
 * @throws ClientError (impossible) if there is no Git
 */
export function personsGit(
  folder: string,
  args: readonly string[],
  input?: string | Uint8Array,
  index?: string,
): Promise<Ended> {
  const gitArguments = ["--no-optional-locks", "-c", "core.hooksPath=/dev/null", ...args];
  const env = { ...childEnvironment("git"), GIT_INDEX_FILE: index };
  return new Promise((resolve, reject) => {
    const child = execFile(
      "git",
      gitArguments,
      { cwd: folder, env, encoding: "buffer", maxBuffer: MAX_OUTPUT_BYTES },
      (error, out, stderr) => {
        const err = stderr.toString();
        if (error === null) resolve({ code: 0, out, err });
        else if (typeof error.code === "number") resolve({ code: error.code, out, err });
        else reject(error.code === "ENOENT" ? notPossible("Git is not installed here.") : error);
      },
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}

/** As `git`, of which success is expected. @throws ClientError (impossible) with Git's words */
export async function mustGit(
  folder: string,
  args: readonly string[],
  input?: string | Uint8Array,
  index?: string,
): Promise<Buffer> {
  const ended = await personsGit(folder, args, input, index);
  const name = args.find((word) => !word.startsWith("-")) ?? "";
  if (ended.code !== 0) throw notPossible(`git ${name}: ${describeGit(ended)}`);
  return ended.out;
}

/** What Git said, whole but for blank lines and what no person reads. */
export function describeGit({ code, err }: Ended): string {
  const lines = err.split("\n").filter((line) => line.trim() !== "");
  return lines.length === 0 ? `it ended with code ${code}` : lines.slice(-MAX_LINES).join("\n");
}

/** A lock, and what is in it while it is held. */
interface Lock {
  readonly file: string;
  readonly texts: readonly string[];
}

/** A git that makes one reference holds its lock for milliseconds; one that outlives us is given this time. */
const SETTLES_MS = 5_000;
/** From an announcement to its lock, on a busy machine. */
const BEGINS_MS = 60_000;
/** File systems round times. */
const ROUNDED_MS = 2_000;

/** The lock that Git itself makes while HEAD is changed to a branch. */
export const headLock = ({ gitFolder }: Checkout, branch: string): Lock => ({
  file: join(gitFolder, "HEAD.lock"),
  texts: ["", `ref: refs/heads/${branch}\n`],
});

/** The locks that Git itself makes while a branch is made or removed. */
export const branchLocks = ({ commonFolder }: Checkout, branch: string, target: string): readonly Lock[] => [
  { file: join(commonFolder, "refs", "heads", `${branch}.lock`), texts: ["", `${target}\n`] },
  { file: join(commonFolder, "packed-refs.lock"), texts: [""] },
];

const announcement = (folder: string) => join(folder, "locks");

/** Lets Git take these locks. @param folder our own, in Git's */
export async function whileLocked<T>(
  folder: string,
  locks: readonly Lock[],
  change: () => Promise<T>,
): Promise<T> {
  writeFileSync(announcement(folder), JSON.stringify(locks));
  try {
    return await change();
  } catch (error) {
    // A git that failed removed its own; one that was killed did not.
    if (error instanceof Error && "signal" in error && typeof error.signal === "string") dropProved(folder);
    throw error;
  } finally {
    rmSync(announcement(folder), { force: true });
  }
}

/**
 * Changes a copy of the checkout's index, and exchanges it: Git's lock has our name in it meanwhile, and no git holds it.
 * @param change gets the copy
 * @throws ClientError (impossible) while another git holds the lock
 */
export async function changeIndex(
  { gitFolder }: Checkout,
  folder: string,
  change: (index: string) => Promise<void>,
): Promise<void> {
  const [lock, index] = [join(gitFolder, "index.lock"), join(gitFolder, "index")];
  const text = `longhaul apply, process ${process.pid}, ${randomUUID()}\n`;
  await whileLocked(folder, [{ file: lock, texts: [text] }], async () => {
    try {
      takeLock(folder, lock, text);
      const copy = join(folder, `index-${randomUUID()}`);
      if (existsSync(index)) copyFileSync(index, copy);
      await change(copy);
      renameSync(copy, index);
    } finally {
      dropProved(folder);
    }
  });
}

/** At once with its text, where the file system has links. */
function takeLock(folder: string, lock: string, text: string): void {
  const ownLock = join(folder, `lock-${randomUUID()}`);
  writeFileSync(ownLock, text);
  try {
    linkSync(ownLock, lock);
  } catch (error) {
    if (existsSync(lock)) throw lockedBy([lock]);
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw error;
    writeFileSync(lock, text, { flag: "wx" });
  }
}

/** Removes the locks that a killed `apply` announced and left. */
export async function removeOwnLocks(folder: string): Promise<void> {
  // Its git may outlive it.
  await until(() => proved(folder).length === 0, SETTLES_MS);
  dropProved(folder);
  rmSync(announcement(folder), { force: true });
}

function dropProved(folder: string): void {
  for (const file of proved(folder)) rmSync(file, { force: true });
}

/** Refuses to begin while a git is at work, or seems to be. @throws ClientError (impossible) */
export function refuseLocked(checkout: Checkout, branch: string): void {
  const locks = [headLock(checkout, branch), ...branchLocks(checkout, branch, "")];
  const files = [join(checkout.gitFolder, "index.lock"), ...locks.map(({ file }) => file)];
  const existing = files.filter((file) => existsSync(file));
  if (existing.length > 0) throw lockedBy(existing);
}

function lockedBy(files: readonly string[]) {
  return notPossible(
    `Git's lock ${files.join(" and ")} is there: another git is at work in this checkout, or one was killed and left it: nothing was changed.`,
    `Wait until no git is at work here. If none is: rm -f ${files.map(quotedWord).join(" ")}`,
  );
}

/** The announced locks that are there, with what only ours have in them. */
function proved(folder: string): string[] {
  try {
    const announcedMs = statSync(announcement(folder)).mtimeMs;
    const locks: readonly Lock[] = JSON.parse(readFileSync(announcement(folder), "utf8"));
    return locks.flatMap(({ file, texts }) => {
      if (!existsSync(file)) return [];
      const afterMs = statSync(file).mtimeMs - announcedMs;
      const isOurs =
        afterMs > -ROUNDED_MS && afterMs < BEGINS_MS && texts.includes(readFileSync(file, "utf8"));
      return isOurs ? [file] : [];
    });
  } catch {
    // None was announced, or not wholly: then its lock was not made.
    return [];
  }
}
