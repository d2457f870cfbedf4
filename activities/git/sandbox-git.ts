/** Git in the sandbox, with the tools' rights: what a workspace's configuration and hooks do, they do there. */
import { randomUUID } from "node:crypto";
import { retryable } from "../contract/failures.ts";
import { deliverSource, pythonArguments } from "../sandbox/agent/sources.ts";
import type { CommandState, Sandbox, SandboxCommand } from "../sandbox/sandbox.ts";
import { lastWords } from "./run-git.ts";
import type { Pack } from "./start-point.ts";

export type GitSandbox = Pick<Sandbox, "start" | "feed" | "wait" | "run" | "read" | "discard">;

/** Large repositories are unpacked and checked out at disk speed. Source: ours. */
const TIMEOUT_MS = 20 * 60_000;
/** At a time: in base64 and JSON it takes some 25 ms of the worker's thread. Source: workspace-program.ts. */
const PIECE_BYTES = 8 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;
const MAX_WORDS_BYTES = 8_000;
/** So that a checkpoint holds each pack: it leaves out files larger than 64 MiB. */
const MAX_PACK_MIB = 48;

const ENVIRONMENT = { LC_ALL: "C.UTF-8", GIT_TERMINAL_PROMPT: "0", GIT_LFS_SKIP_SMUDGE: "1" };

export interface Checkout {
  readonly url: string;
  readonly branch: string;
  readonly commit: string;
  readonly defaultBranch: string | undefined;
  readonly author: { readonly name: string; readonly email: string };
}

const BEGIN = `find . -mindepth 1 -delete
git init -q -b "$BRANCH" .
git config user.name "$NAME"
git config user.email "$EMAIL"
git remote add origin "$URL"
git config pack.packSizeLimit ${MAX_PACK_MIB}m`;

const END = `if [ -n "$SHALLOW" ]; then printf '%s\\n' "$SHALLOW" > .git/shallow; fi
git update-ref --stdin
if [ -n "$DEFAULT" ] && git rev-parse -q --verify "refs/remotes/origin/$DEFAULT" >/dev/null
then git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$DEFAULT"; fi
if [ -n "$(find .git/objects/pack -name '*.pack' -size +60M)" ]; then git repack -adq; fi
git checkout -q -B "$BRANCH" "$COMMIT"`;

/**
 * Makes /workspace a checkout on a branch of its own; what was there is removed. @returns how many bytes the pack had
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export async function checkOut(sandbox: GitSandbox, checkout: Checkout, pack: Pack): Promise<number> {
  const { branch, url, author, commit, defaultBranch = "" } = checkout;
  const env = { BRANCH: branch, URL: url, NAME: author.name, EMAIL: author.email };
  await must(sandbox, "prepare the checkout", { argv: shell(BEGIN), env });
  const bytes = await feedPack(sandbox, pack.bytes);
  const refs = pack.refs.map(([name, object]) => `update ${name} ${object}\n`).join("");
  await must(sandbox, "check the repository out", {
    argv: shell(END),
    env: { BRANCH: branch, COMMIT: commit, DEFAULT: defaultBranch, SHALLOW: pack.shallow.trim() },
    stdin: Buffer.from(refs),
  });
  return bytes;
}

const shell = (script: string): string[] => ["sh", "-ec", script];

async function feedPack(sandbox: GitSandbox, bytes: Pack["bytes"]): Promise<number> {
  const id = `git-${randomUUID()}`;
  const pieces = inPieces(bytes);
  const first = await pieces.next();
  await sandbox.start({
    ...command(id, { argv: ["git", "index-pack", "--stdin"] }),
    stdin: first.value ?? new Uint8Array(),
    more: true,
  });
  let offset = first.value?.byteLength ?? 0;
  for (;;) {
    const next = await pieces.next();
    const piece = next.value ?? new Uint8Array();
    const goesOn = await sandbox.feed(id, offset, piece, { last: next.done === true });
    if (!goesOn || next.done === true) break;
    offset += piece.byteLength;
  }
  await pieces.return(undefined);
  await ended(sandbox, "unpack the repository", await sandbox.wait(id, { timeoutMs: TIMEOUT_MS }));
  return offset;
}

async function* inPieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of bytes) {
    parts.push(part);
    size += part.byteLength;
    if (size < PIECE_BYTES) continue;
    yield Buffer.concat(parts);
    [parts, size] = [[], 0];
  }
  if (size > 0) yield Buffer.concat(parts);
}

export interface Prepared {
  readonly head: string;
  /** Commits of HEAD that the base does not have; -1 where the base is not there. */
  readonly ahead: number;
  /** The commit that was made of what was left; absent where there was nothing. */
  readonly committed?: string;
  /** What was left out of it. */
  readonly leftOut: readonly { readonly path: string; readonly bytes: number; readonly reason: string }[];
  readonly leftOutCount: number;
}

/** Commits what is left, where `commit` says so. Idempotent. @returns why it cannot be delivered, where that is so */
export async function prepareWork(
  sandbox: GitSandbox,
  order: {
    readonly base: string;
    readonly commit?: { readonly message: string; readonly author: Checkout["author"] } | undefined;
  },
): Promise<Prepared | { readonly trouble: string }> {
  const state = await run(sandbox, {
    argv: pythonArguments("LONGHAUL_DELIVER"),
    env: { LONGHAUL_DELIVER: deliverSource },
    stdin: Buffer.from(JSON.stringify(order)),
  });
  const out = await endedText(sandbox, "prepare the push", state);
  return JSON.parse(out) as Prepared | { trouble: string };
}

/**
 * The work's commits as a bundle, piece by piece; `HEAD` is its only reference.
 * @param base left out of it with its history; undefined: nothing is
 * @returns undefined where it has more than `maxBytes`
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export async function readBundle(
  sandbox: GitSandbox,
  options: { readonly base: string | undefined; readonly maxBytes: number },
  take: (piece: Uint8Array) => Promise<void>,
): Promise<number | undefined> {
  const range = options.base === undefined ? ["HEAD"] : ["HEAD", `^${options.base}`];
  const state = await run(sandbox, {
    argv: ["git", "bundle", "create", "--quiet", "-", ...range],
    maxOutputBytes: options.maxBytes,
  });
  if (state.outBytes > state.outKept || state.outBytes > options.maxBytes) {
    await sandbox.discard(state.id);
    return undefined;
  }
  if (state.kind !== "exited" || state.exitCode !== 0) await ended(sandbox, "bundle the commits", state);
  for (let at = 0; at < state.outKept;) {
    const piece = await sandbox.read(state.id, "out", at, Math.min(READ_BYTES, state.outKept - at));
    if (piece.byteLength === 0)
      throw retryable(
        "SandboxUnavailable",
        "The commits could not be read from the sandbox; it is tried again.",
      );
    await take(piece);
    at += piece.byteLength;
  }
  await sandbox.discard(state.id);
  return state.outKept;
}

type Order = Pick<SandboxCommand, "argv" | "env" | "stdin" | "maxOutputBytes">;

function command(id: string, order: Order): SandboxCommand {
  return { id, ...order, env: { ...ENVIRONMENT, ...order.env }, timeoutMs: TIMEOUT_MS };
}

function run(sandbox: GitSandbox, order: Order): Promise<CommandState> {
  return sandbox.run(command(`git-${randomUUID()}`, order), { timeoutMs: TIMEOUT_MS + 10_000 });
}

async function must(sandbox: GitSandbox, what: string, order: Order): Promise<void> {
  await ended(sandbox, what, await run(sandbox, order));
}

async function ended(sandbox: GitSandbox, what: string, state: CommandState): Promise<void> {
  await endedText(sandbox, what, state);
}

/** @returns what it wrote, at most 1 MiB. @throws SandboxUnavailable where it failed */
async function endedText(sandbox: GitSandbox, what: string, state: CommandState): Promise<string> {
  const text = async (stream: "out" | "err", maxBytes: number) =>
    new TextDecoder().decode(await sandbox.read(state.id, stream, 0, maxBytes));
  if (state.kind === "exited" && state.exitCode === 0) {
    const out = state.outKept > 0 ? await text("out", READ_BYTES) : "";
    await sandbox.discard(state.id);
    return out;
  }
  const written = async () => (state.errKept > 0 ? await text("err", MAX_WORDS_BYTES) : "");
  const words = state.kind === "refused" ? state.reason : await written();
  await sandbox.discard(state.id);
  const how = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
  throw retryable(
    "SandboxUnavailable",
    `Git in the sandbox could not ${what} (${how}): ${lastWords(words)}. Nothing is lost; it is tried again.`,
  );
}
