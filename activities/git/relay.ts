/** The bare repository through which a session's commits are pushed. As long as it is used, it keeps every commit it received. */
import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { inTurn } from "../sandbox/shared-work.ts";
import type { GitAccess } from "./git-access.ts";
import { gitReason } from "./git-words.ts";
import { toFormatOption, hasCommit } from "./mirror.ts";
import { exists, toFolderName, makeWhole, atWork } from "./own-repositories.ts";
import { remoteTrouble } from "./remote.ts";
import { git, runGit } from "./run-git.ts";
import { readBundle } from "./sandbox-git.ts";
import { isDiskError } from "./trouble.ts";

const INCOMING = "refs/longhaul/incoming";

export interface Relay {
  readonly folder: string;
  readonly access: GitAccess;
}

/** `isPassing`: the commits are not the reason, but this worker's disk or its copy. */
export type ReceivedCommits =
  | { readonly commit: string }
  | { readonly refused: string; readonly isPassing?: boolean };

/**
 * @param mirror whose objects it borrows; if that is gone, the sandbox's commits are taken in full
 * @param commit one of the session's, which says the format of its objects
 */
export async function openRelay(
  access: GitAccess,
  sessionId: string,
  mirror: string,
  commit?: string,
): Promise<Relay> {
  const folder = join(access.folder, "relays", `${toFolderName(sessionId)}.git`);
  return inTurn(folder, async () => {
    if (!(await exists(folder)))
      await makeWhole(folder, async (path) => {
        await git(access, ["init", "--quiet", "--bare", ...toFormatOption(commit), path]);
        await writeFile(join(path, "objects", "info", "alternates"), `${join(mirror, "objects")}\n`);
      });
    return { folder, access };
  });
}

/**
 * Takes the commits of a reference in the sandbox: those that `base` does not have, or all of them if the relay lacks `base`. Their
 * form is checked.
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export async function receive(
  relay: Relay,
  sandbox: CommandSandbox,
  want: {
    readonly head: string;
    readonly ref: string;
    readonly base: string | undefined;
    readonly maxBytes: number;
    readonly signal: AbortSignal;
  },
): Promise<ReceivedCommits> {
  const { access, folder } = relay;
  return inTurn(folder, () =>
    atWork(folder, async () => {
      if (await hasCommit(access, folder, want.head)) return keep(relay, want.head);
      const known =
        want.base !== undefined && (await hasCommit(access, folder, want.base)) ? want.base : undefined;
      const first = await take(relay, sandbox, { ...want, base: known });
      // A shallow history, or one that was rewritten below the base, needs more than the commits after it.
      const needsMore = known !== undefined && first.lacks === true;
      return needsMore ? take(relay, sandbox, { ...want, base: undefined }) : first;
    }),
  );
}

async function take(
  relay: Relay,
  sandbox: CommandSandbox,
  want: {
    readonly ref: string;
    readonly base: string | undefined;
    readonly maxBytes: number;
    readonly signal: AbortSignal;
  },
): Promise<ReceivedCommits & { readonly lacks?: boolean }> {
  const { access, folder } = relay;
  const path = join(folder, `incoming-${randomUUID()}.bundle`);
  try {
    const bundle = await readBundle(sandbox, want);
    if (bundle === undefined)
      return {
        refused: `the commits are larger than git.maxBundle (${Math.floor(want.maxBytes / 2 ** 20)} MiB)`,
      };
    await writeFile(path, bundle, { flag: "wx", mode: 0o600 });
    const unfit = await whyUnfit(relay, path, want.signal);
    if (unfit !== undefined) return unfit;
    const args = [
      "fetch",
      "--quiet",
      "--no-tags",
      "--no-write-fetch-head",
      "--force",
      path,
      `${want.ref}:${INCOMING}`,
    ];
    const fetched = await runGit(access, args, { cwd: folder, signal: want.signal });
    if (fetched.code !== 0) {
      if (remoteTrouble("file:///relay", fetched).kind === "disk")
        return {
          refused: noRoom(fetched.err),
          isPassing: true,
        };
      const lacks = /lacks these prerequisite|missing|shallow/i.test(fetched.err);
      const why = lacks ? "the relay cannot take the commits" : "the commits are not well-formed";
      return { refused: `${why}: ${gitReason(fetched.err)}`, lacks };
    }
    return keep(relay, await git(access, ["rev-parse", INCOMING], { cwd: folder }));
  } catch (error) {
    if (!isDiskError(error)) throw error;
    return { refused: `the worker's own disk cannot take the commits: ${error.message}`, isPassing: true };
  } finally {
    await rm(path, { force: true });
  }
}

/** Enough for what a bundle says before its pack: its version, one reference, and the commits that it stands on. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Looks at the form of each object of a bundle before any of them counts. Git itself does that for what it fetches from a server; from a
 * bundle only since 2.46 (measured: 2.39.5 takes a commit with two authors).
 */
async function whyUnfit(
  { access, folder }: Relay,
  bundle: string,
  signal: AbortSignal,
): Promise<{ readonly refused: string; readonly lacks: boolean; readonly isPassing?: boolean } | undefined> {
  const file = await open(bundle);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_HEADER_BYTES), 0, MAX_HEADER_BYTES, 0);
  await file.close();
  const end = buffer.subarray(0, bytesRead).indexOf("\n\n");
  // The fetch says what is wrong with it.
  if (end < 0) return undefined;
  const args = ["index-pack", "--stdin", "--fix-thin", "--fsck-objects"];
  const input = createReadStream(bundle, { start: end + 2 });
  const checked = await runGit(access, args, { cwd: folder, input, signal });
  if (checked.code === 0) return undefined;
  if (remoteTrouble("file:///relay", checked).kind === "disk")
    return { refused: noRoom(checked.err), isPassing: true, lacks: false };
  const lacks = /unresolved deltas?|missing/i.test(checked.err);
  return { refused: `the commits are not well-formed: ${gitReason(checked.err)}`, lacks };
}

const noRoom = (stderr: string): string =>
  `the worker's own disk cannot take the commits: ${gitReason(stderr)}`;

/** Under a separate reference, so that commits that a reset abandons stay. */
async function keep({ access, folder }: Relay, commit: string): Promise<ReceivedCommits> {
  await git(access, ["update-ref", `refs/longhaul/commits/${commit}`, commit], { cwd: folder });
  return { commit };
}

/** How many commits `commit` has that `base` does not; 1 if the relay lacks `base`. */
export async function commitsSince({ access, folder }: Relay, base: string, commit: string): Promise<number> {
  const counted = await runGit(access, ["rev-list", "--count", commit, `^${base}`], { cwd: folder });
  return counted.code === 0 ? Number(counted.out) : 1;
}
