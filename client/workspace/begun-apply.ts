/**
 * The part of `apply` that changes a checkout. All of it is prepared in a folder of Git's own first, and each step can be done again:
 * an `apply` that was killed is finished by the next one.
 */
import { quotedWord } from "../console/format.ts";
import { createHash } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { join, posix } from "node:path";
import { textOfBytes } from "../../activities/store/path-text.ts";
import { notPossible } from "../console/errors.ts";
import { birthOf, isAlive, type ProcessMark } from "../setup/processes.ts";
import {
  branchLocks,
  changeIndex,
  headLock,
  removeOwnLocks,
  whileLocked,
  personsGit,
  mustGit,
  type Checkout,
} from "./persons-git.ts";
import { placeFile, type NewFile, type NewLink } from "./write-workspace.ts";
import { listed, lookAt, onDisk } from "./patched-files.ts";

/** A change that is ready. */
export interface Plan {
  /** Which change it is. */
  readonly change: string;
  readonly branch: string;
  /** The branch or commit that is checked out before. */
  readonly from: string;
  /** The new branch's commit; undefined in a repository without any. */
  readonly target: string | undefined;
  /** Whether the commit has the change; otherwise Git's words, and where the message is for `git commit -F`. */
  readonly applied:
    | { readonly committed: true }
    | { readonly committed: false; readonly why: string; readonly messageFile: string };
  readonly removed: readonly string[];
  /** Their content is in the prepared tree. */
  readonly written: readonly string[];
  /** For Git's index: lines of `update-index --index-info`, a byte as a character. */
  readonly entries: readonly string[];
}

const FOLDER = "longhaul-apply";
/** In the top folder, so that it is on the files' disk. */
const BESIDE = ".longhaul-apply.new";

const preparedPath = ({ gitFolder }: Pick<Checkout, "gitFolder">, name = "") => join(gitFolder, FOLDER, name);

/** The prepared files, in their places. */
export const preparedTree = (checkout: Checkout): string => preparedPath(checkout, "tree");
/** Git's own data for them: an index of its own, and everything else as the checkout has it. */
export const preparedGit = (checkout: Checkout): string => preparedPath(checkout, "git");

/**
 * Takes the checkout for this process.
 * @returns the change that a killed process left, if it had begun
 * @throws ClientError (impossible) while another process applies something here
 */
export async function takeCheckout(checkout: Checkout): Promise<Plan | undefined> {
  const owner = read<ProcessMark & { readonly host?: string }>(preparedPath(checkout, "owner"));
  if (owner?.host !== undefined && owner.host !== hostname())
    throw notPossible(
      `\`longhaul apply\` was begun in this checkout on ${owner.host}, by process ${owner.pid}, and whether that lives cannot be seen from here.`,
      `Run it there. If that machine is gone: rm '${preparedPath(checkout, "owner")}', and run it again: it finishes what was begun.`,
    );
  if (owner !== undefined && (await isAlive(owner)))
    throw notPossible(`Another \`longhaul apply\` is at work in this checkout: process ${owner.pid}.`);
  const plan = read<Plan>(preparedPath(checkout, "plan"));
  if (plan === undefined) forget(checkout);
  else await removeOwnLocks(preparedPath(checkout));
  mkdirSync(preparedPath(checkout), { recursive: true });
  const mark: ProcessMark = { pid: process.pid, born: (await birthOf(process.pid)) ?? "" };
  writeFileSync(preparedPath(checkout, "owner"), JSON.stringify({ ...mark, host: hostname() }));
  return plan;
}

/** Gives it back; what has begun stays, for the next `apply`. */
export function leaveCheckout(checkout: Checkout): void {
  if (read<Plan>(preparedPath(checkout, "plan")) === undefined) forget(checkout);
  else rmSync(preparedPath(checkout, "owner"), { force: true });
}

const forget = (checkout: Checkout) => rmSync(preparedPath(checkout), { recursive: true, force: true });

/** From here on, the change is finished by this process or by the next `apply`, or undone. */
export function begin(checkout: Checkout, plan: Plan): void {
  writeFileSync(preparedPath(checkout, "plan.new"), JSON.stringify(plan));
  renameSync(preparedPath(checkout, "plan.new"), preparedPath(checkout, "plan"));
}

/** Which change it is, for a `Plan`. */
export const nameOfChange = (parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex");

/**
 * The first half: the branch, and the files. May be repeated.
 * @param changed which of these files have changes that would be lost, one per line
 * @throws ClientError (impossible) if the checkout is not as it was left
 */
export async function putFiles(
  checkout: Checkout,
  plan: Plan,
  changed: (paths: readonly string[]) => Promise<string>,
): Promise<void> {
  const { top } = checkout;
  const { branch, from, target } = plan;
  const at = await checkedOut(top);
  if (at === branch) return;
  const open = [
    ...plan.removed.filter((path) => isFile(onDisk(top, path))),
    ...plan.written.filter((path) => !isPlaced(checkout, path)),
  ];
  const lost = at === from ? await changed(open) : `${at} is checked out, and was not: it was ${from}.`;
  if (lost !== "") throw notPossible(lost);
  if (target !== undefined) await makeBranch(checkout, branch, target);
  await placeFiles(checkout, plan, open);
}

/** The second half, which only Git does: its index, and the branch is checked out last. May be repeated. @throws ClientError (impossible) */
export async function checkOutBranch(checkout: Checkout, { branch, from, entries }: Plan): Promise<void> {
  const { top } = checkout;
  if ((await checkedOut(top)) !== branch) {
    const lines = Buffer.from(entries.map((entry) => `${entry}\0`).join(""), "latin1");
    await changeIndex(checkout, preparedPath(checkout), async (index) => {
      await mustGit(top, ["update-index", "--replace", "-z", "--index-info"], lines, index);
      await personsGit(top, ["update-index", "-q", "--refresh"], undefined, index);
    });
    const moving = `checkout: moving from ${from} to ${branch}`;
    const toBranch = ["symbolic-ref", "-m", moving, "HEAD", `refs/heads/${branch}`];
    await whileLocked(preparedPath(checkout), [headLock(checkout, branch)], () => mustGit(top, toBranch));
  }
  forget(checkout);
}

/** What stopped it, and what the person can do. */
export function unfinished(checkout: Checkout, { branch }: Plan, why: string) {
  return notPossible(
    `The change is not wholly in this checkout yet: \`longhaul apply\` was stopped while it put ${branch} here.\n${why}`,
    `Put that right, and run it again: it goes on. Or give it up: rm -r ${quotedWord(preparedPath(checkout))}; \`git status\` shows which files it wrote.`,
  );
}

/** The branch, or the commit if there is none. @throws ClientError (impossible) */
export async function checkedOut(top: string): Promise<string> {
  const branch = await personsGit(top, ["symbolic-ref", "--quiet", "HEAD"]);
  const head = branch.code === 0 ? branch.out : await mustGit(top, ["rev-parse", "HEAD"]);
  return String(head)
    .trim()
    .replace(/^refs\/heads\//, "");
}

async function makeBranch(checkout: Checkout, branch: string, target: string): Promise<void> {
  const { top } = checkout;
  const ref = `refs/heads/${branch}`;
  const answer = await personsGit(top, ["rev-parse", "--verify", "--quiet", ref]);
  if (String(answer.out).trim() === target) return;
  const make = ["update-ref", "-m", "longhaul apply", ref, target, ""];
  await whileLocked(preparedPath(checkout), branchLocks(checkout, branch, target), () => mustGit(top, make));
}

/** Whether a file or link is there. */
const isFile = (file: Buffer): boolean => lookAt(file)?.isDirectory() === false;

/** Whether a file is as it is to be. */
const isPlaced = (checkout: Checkout, path: string): boolean =>
  isFile(onDisk(checkout.top, path)) &&
  isSame(contentAt(onDisk(checkout.top, path)), contentAt(onDisk(preparedTree(checkout), path)));

function contentAt(file: Buffer): NewFile | NewLink {
  const stats = lstatSync(file);
  if (stats.isSymbolicLink()) return { kind: "link", target: readlinkSync(file, { encoding: "buffer" }) };
  return { kind: "file", bytes: readFileSync(file), mode: stats.mode & 0o111 ? 0o777 : 0o666 };
}

function isSame(one: NewFile | NewLink, other: NewFile | NewLink): boolean {
  if (one.kind === "link")
    return other.kind === "link" && Buffer.from(one.target).equals(Buffer.from(other.target));
  return other.kind === "file" && one.mode === other.mode && Buffer.compare(one.bytes, other.bytes) === 0;
}

async function placeFiles(checkout: Checkout, plan: Plan, open: readonly string[]): Promise<void> {
  const { top, prefix } = checkout;
  const openPaths = new Set(open);
  // All of them, whether or not they are gone: the folders around them may still be there.
  for (const path of plan.removed) remove(top, prefix, path);
  for (const path of plan.written.filter((name) => openPaths.has(name))) {
    mkdirSync(onDisk(top, posix.dirname(path)), { recursive: true });
    await placeFile(onDisk(top, path), join(top, BESIDE), contentAt(onDisk(preparedTree(checkout), path)));
  }
  rmSync(join(top, BESIDE), { force: true });
}

/** Removes a file and the folders that are empty then, but for the current one. */
function remove(top: string, prefix: string, path: string): void {
  try {
    if (isFile(onDisk(top, path))) rmSync(onDisk(top, path), { force: true });
    let around = posix.dirname(path);
    for (; around !== "." && !prefix.startsWith(`${around}/`); around = posix.dirname(around))
      rmdirSync(onDisk(top, around));
  } catch {
    // Not empty, or a file is where a folder is to be: then writing says so.
  }
}

/** Makes the files what HEAD has again, as long as no more than they and the branch were changed. @throws ClientError (impossible) */
export async function undo(checkout: Checkout, plan: Plan): Promise<void> {
  const { top, prefix } = checkout;
  const tracked = new Set(textOfBytes(await mustGit(top, ["ls-files", "-z"])).split("\0"));
  for (const path of plan.written.filter((name) => !tracked.has(name))) remove(top, prefix, path);
  const theirs = [...plan.removed, ...plan.written].filter((name) => tracked.has(name));
  await changeIndex(checkout, preparedPath(checkout), async (index) => {
    await mustGit(top, ["checkout-index", "-f", "-z", "--stdin"], listed(theirs), index);
    await personsGit(top, ["update-index", "-q", "--refresh"], undefined, index);
  });
  const { branch, target } = plan;
  if (target !== undefined) {
    const remove = ["update-ref", "-d", `refs/heads/${branch}`, target];
    await whileLocked(preparedPath(checkout), branchLocks(checkout, branch, target), () =>
      mustGit(top, remove),
    );
  }
  forget(checkout);
}

function read<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
