/** Our own commands in the sandbox, with the tools' rights: input, output and exit. */
import { randomUUID } from "node:crypto";
import { retryable } from "../contract/failures.ts";
import type { CommandState, Sandbox, SandboxCommand } from "../sandbox/sandbox.ts";
import { lastWords } from "./run-git.ts";

export type GitSandbox = Pick<Sandbox, "start" | "feed" | "wait" | "run" | "read" | "discard">;

/** Large repositories are unpacked and checked out at disk speed. Source: ours. */
const TIMEOUT_MS = 20 * 60_000;
/** At a time: in base64 and JSON it takes some 25 ms of the worker's thread. Source: workspace-program.ts. */
const PIECE_BYTES = 8 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;
const MAX_WORDS_BYTES = 8_000;

const ENVIRONMENT = { LC_ALL: "C.UTF-8", GIT_TERMINAL_PROMPT: "0", GIT_LFS_SKIP_SMUDGE: "1" };

export type Order = Pick<SandboxCommand, "argv" | "env" | "stdin" | "maxOutputBytes" | "cwd">;

export const shell = (script: string, ...words: string[]): string[] => ["sh", "-ec", script, "sh", ...words];

function command(id: string, order: Order): SandboxCommand {
  return { id, ...order, env: { ...ENVIRONMENT, ...order.env }, timeoutMs: TIMEOUT_MS };
}

/** The command's state once it has ended; its output must be read and discarded. */
function run(sandbox: GitSandbox, order: Order): Promise<CommandState> {
  return sandbox.run(command(`git-${randomUUID()}`, order), { timeoutMs: TIMEOUT_MS + 10_000 });
}

/** @throws SandboxUnavailable if it failed */
export async function must(sandbox: GitSandbox, what: string, order: Order): Promise<string> {
  return endedText(sandbox, what, await run(sandbox, order));
}

/**
 * Runs a command that reads `bytes` as they come. @returns how many they were
 * @throws SandboxUnavailable if it failed
 */
export async function feedAll(
  sandbox: GitSandbox,
  what: string,
  order: Order,
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  const id = `git-${randomUUID()}`;
  const pieces = inPieces(bytes);
  const first = await pieces.next();
  await sandbox.start({ ...command(id, order), stdin: first.value ?? new Uint8Array(), more: true });
  let offset = first.value?.byteLength ?? 0;
  for (;;) {
    const next = await pieces.next();
    const piece = next.value ?? new Uint8Array();
    const goesOn = await sandbox.feed(id, offset, piece, { last: next.done === true });
    if (!goesOn || next.done === true) break;
    offset += piece.byteLength;
  }
  await pieces.return(undefined);
  await endedText(sandbox, what, await sandbox.wait(id, { timeoutMs: TIMEOUT_MS }));
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

/**
 * A command's output piece by piece. @returns its bytes; undefined if it wrote more than `maxBytes`
 * @throws SandboxUnavailable if it failed, or its output is gone
 */
export async function readOutput(
  sandbox: GitSandbox,
  what: string,
  order: Order & { readonly maxOutputBytes: number },
  take: (piece: Uint8Array) => Promise<void>,
): Promise<number | undefined> {
  const state = await run(sandbox, order);
  if (state.outBytes > state.outKept || state.outBytes > order.maxOutputBytes) {
    await sandbox.discard(state.id);
    return undefined;
  }
  if (state.kind !== "exited" || state.exitCode !== 0) await endedText(sandbox, what, state);
  for (let at = 0; at < state.outKept;) {
    const piece = await sandbox.read(state.id, "out", at, Math.min(READ_BYTES, state.outKept - at));
    if (piece.byteLength === 0)
      throw retryable(
        "SandboxUnavailable",
        `The output of a command to ${what} could not be read from the sandbox; it is tried again.`,
      );
    await take(piece);
    at += piece.byteLength;
  }
  await sandbox.discard(state.id);
  return state.outKept;
}

/** @returns what it wrote, at most 1 MiB. @throws SandboxUnavailable if it failed */
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
