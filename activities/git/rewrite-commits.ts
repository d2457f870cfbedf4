/**
 * The session's own commits, written anew in the relay before they are pushed: with the author, the trailers and the signature that were
 * asked for. Own is what the agent has committed and no branch of the forge has; nothing else is ever changed. The same commits each time,
 * so that a push can be repeated, and commits that the sandbox does not have yet under their new names go under these again.
 */
import { inTime } from "../config/output-schema.ts";
import type { CommitStyle } from "../config/commit-settings.ts";
import { cutChars, shorten } from "../text/cut.ts";
import {
  asStoredName,
  formatCommit,
  findHeader,
  isSameWork,
  parseCommit,
  restyled,
  timeIn,
  withSignature,
  type CommitParts,
} from "./commit-form.ts";
import type { Relay } from "./relay.ts";
import { git, runGit } from "./run-git.ts";
import type { Signer } from "./signing-key.ts";
import { gitReason } from "./git-words.ts";
import { quoted, refusal, type Refusal } from "./trouble.ts";

export interface RewriteOrder {
  readonly commit: string;
  /** Commits that the forge has: they and all before them are left as they are. */
  readonly onForge: readonly string[];
  /** Those of them that this session has pushed. */
  readonly delivered: readonly string[];
  readonly style: CommitStyle;
  /** What each message must match, as a regular expression. */
  readonly pattern?: string | undefined;
  readonly signer?: Signer | undefined;
}

export interface Rewritten {
  /** The commit to push. */
  readonly commit: string;
  /** New names by the old ones; empty if nothing was changed. */
  readonly names: ReadonlyMap<string, string>;
  /** Commits of others that no branch of the forge has, and which stay unsigned. */
  readonly foreign: number;
}

/** @throws GitFailed, CredentialUnavailable if the key does not sign */
export async function rewriteOwn(relay: Relay, rewriteOrder: RewriteOrder): Promise<Rewritten | Refusal> {
  const { commit, style } = rewriteOrder;
  const listed = await listNew(relay, rewriteOrder);
  const address = asStoredName(style.agent.email);
  const own = listed.filter(({ email }) => email === address);
  const objects = await readCommits(
    relay,
    own.map(({ id }) => id),
  );
  const mismatch =
    rewriteOrder.pattern === undefined ? undefined : firstMismatch(objects, rewriteOrder.pattern);
  if (mismatch !== undefined) return mismatch;
  const twins = own.length === 0 ? [] : await deliveredCommits(relay, rewriteOrder);
  const names = new Map<string, string>();
  for (const { id, parents } of listed) {
    const parts = objects.get(id);
    if (parts === undefined) {
      if (parents.some((parent) => names.has(parent))) return onTop(id);
      continue;
    }
    const written = await writeAnew(relay, rewriteOrder, { id, parts, names, twins });
    if (typeof written !== "string") return written;
    if (written !== id) names.set(id, written);
  }
  const head = names.get(commit) ?? commit;
  if (head !== commit)
    await git(relay.access, ["update-ref", `refs/longhaul/commits/${head}`, head], { cwd: relay.folder });
  return { commit: head, names, foreign: listed.length - own.length };
}

const onTop = (id: string): Refusal =>
  refusal(
    `the commit ${id.slice(0, 12)} is on top of commits of the session, which get new names by git.sign, git.author or git.trailers, and was committed under another address than the agent's, so it may not be changed. Commit with the settings that the checkout came with (git config user.email)`,
  );

interface NewCommit {
  readonly id: string;
  readonly parents: readonly string[];
  readonly email: string;
}

/** Commits that the forge does not have, parents first. */
async function listNew({ access, folder }: Relay, { commit, onForge }: RewriteOrder): Promise<NewCommit[]> {
  const args = ["log", "--topo-order", "--reverse", "--format=%H%x00%P%x00%ce", "--stdin"];
  const input = [commit, ...onForge.map((one) => `^${one}`), ""].join("\n");
  const out = await git(access, args, { cwd: folder, input, encoding: "latin1" });
  return out.split("\n").flatMap((line) => {
    const [id = "", parents = "", email = ""] = line.split("\0");
    return id === "" ? [] : [{ id, parents: parents.split(" ").filter((one) => one !== ""), email }];
  });
}

/** Of a batch of `git cat-file`, whose answer is held whole. Chosen: a commit has some hundred bytes. */
const AT_ONCE = 1_000;

async function readCommits(
  { access, folder }: Relay,
  ids: readonly string[],
): Promise<ReadonlyMap<string, CommitParts>> {
  const commits = new Map<string, CommitParts>();
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const input = `${ids.slice(from, from + AT_ONCE).join("\n")}\n`;
    const { out } = await runGit(access, ["cat-file", "--batch"], { cwd: folder, input, encoding: "latin1" });
    let at = 0;
    while (at < out.length) {
      const end = out.indexOf("\n", at);
      const [id = "", kind, size] = out.slice(at, end).split(" ");
      if (kind !== "commit") break;
      commits.set(id, parseCommit(out.slice(end + 1, end + 1 + Number(size))));
      at = end + 2 + Number(size);
    }
  }
  return commits;
}

/** What this session has pushed since where the others' commits end: they may be ours under other names. */
async function deliveredCommits(
  relay: Relay,
  { delivered, onForge }: RewriteOrder,
): Promise<readonly (readonly [id: string, parts: CommitParts])[]> {
  if (delivered.length === 0) return [];
  const others = onForge.filter((one) => !delivered.includes(one));
  const args = ["rev-list", "--ignore-missing", `--max-count=${MAX_TWINS}`, "--stdin"];
  const input = [...delivered, ...others.map((one) => `^${one}`), ""].join("\n");
  const listed = await runGit(relay.access, args, { cwd: relay.folder, input });
  return [
    ...(await readCommits(
      relay,
      listed.out.split("\n").filter((id) => id !== ""),
    )),
  ];
}

/** Chosen: further ones of so long a branch are known by being the same each time. */
const MAX_TWINS = 10_000;

async function writeAnew(
  { access, folder }: Relay,
  { style, signer }: RewriteOrder,
  {
    id,
    parts,
    names,
    twins,
  }: {
    readonly id: string;
    readonly parts: CommitParts;
    readonly names: ReadonlyMap<string, string>;
    readonly twins: readonly (readonly [string, CommitParts])[];
  },
): Promise<string | Refusal> {
  const plain = restyled(parts, style, names);
  if (plain === undefined)
    return refusal(
      `the commit ${id.slice(0, 12)} is written in ${quoted(findHeader(parts, "encoding") ?? "")}, and git.author, git.coAuthor or git.trailers add characters that are not in ASCII. Commit it in UTF-8 (git config --unset i18n.commitEncoding)`,
    );
  if (signer === undefined && formatCommit(plain) === formatCommit(parts)) return id;
  const moved = {
    ...parts,
    headers: parts.headers.map(
      ([name, value]) => [name, name === "parent" ? (names.get(value) ?? value) : value] as const,
    ),
  };
  const twin = twins.find(([, written]) => isSameWork(written, moved));
  if (twin !== undefined) return twin[0];
  const header = id.length === 64 ? "gpgsig-sha256" : "gpgsig";
  const time = timeIn(findHeader(plain, "committer"));
  const whole =
    signer === undefined ? plain : withSignature(plain, await signer.sign(formatCommit(plain), time), header);
  const args = ["hash-object", "-t", "commit", "-w", "--stdin"];
  const made = await runGit(access, args, { cwd: folder, input: Buffer.from(formatCommit(whole), "latin1") });
  if (made.code === 0) return made.out.trim();
  return refusal(`the commit ${id.slice(0, 12)} cannot be written anew: ${gitReason(made.err)}`);
}

/** A longer message is judged by its beginning. */
const MAX_JUDGED_CHARS = 1_000;
const MAX_SHOWN_CHARS = 80;

function firstMismatch(commits: ReadonlyMap<string, CommitParts>, pattern: string): Refusal | undefined {
  for (const [id, { message }] of commits) {
    const text = cutChars(Buffer.from(message, "latin1").toString().trimEnd(), MAX_JUDGED_CHARS);
    const about = `the message of the commit ${id.slice(0, 12)}, ${quoted(shorten(text.split("\n", 1)[0] ?? "", MAX_SHOWN_CHARS))},`;
    try {
      const matcher = new RegExp(pattern, "u");
      if (!inTime(() => matcher.test(text)))
        return refusal(`${about} does not match git.message.pattern: ${shorten(pattern, 200)}`);
    } catch {
      return refusal(
        `${about} could not be compared with git.message.pattern within a second. Write the pattern without repetitions within repetitions`,
      );
    }
  }
  return undefined;
}
