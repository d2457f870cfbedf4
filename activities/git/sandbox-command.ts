/** Git's commands in the sandbox. A failed one is retried: nothing of the session is lost with it. */
import { randomUUID } from "node:crypto";
import { retryable } from "../contract/failures.ts";
import { endOf, runFed, runOwn, wholeOutput, type CommandSandbox } from "../sandbox/own-command.ts";
import type { CommandState, SandboxCommand } from "../sandbox/sandbox.ts";
import { gitReason } from "./git-reason.ts";

/** Large repositories are unpacked and checked out at disk speed. Source: ours. */
const TIMEOUT_MS = 20 * 60_000;

const ENVIRONMENT = { LC_ALL: "C.UTF-8", GIT_TERMINAL_PROMPT: "0", GIT_LFS_SKIP_SMUDGE: "1" };

type Order = Pick<SandboxCommand, "argv" | "env" | "stdin" | "maxOutputBytes" | "cwd">;

export const shell = (script: string, ...words: string[]): string[] => ["sh", "-ec", script, "sh", ...words];

const command = (order: Order) => ({
  ...order,
  id: `git-${randomUUID()}`,
  env: { ...ENVIRONMENT, ...order.env },
  timeoutMs: TIMEOUT_MS,
});

/** @returns what it wrote, at most 1 MiB. @throws SandboxUnavailable if it failed */
export async function must(sandbox: CommandSandbox, what: string, order: Order): Promise<string> {
  return textOf(sandbox, what, await runOwn(sandbox, command(order)));
}

/**
 * Runs a command that reads `input` as it comes. @returns how many bytes it had
 * @throws SandboxUnavailable if it failed
 */
export async function feedAll(
  sandbox: CommandSandbox,
  what: string,
  order: Order,
  input: AsyncIterable<Uint8Array>,
): Promise<number> {
  const { state, bytes } = await runFed(sandbox, command(order), input);
  await textOf(sandbox, what, state);
  return bytes;
}

/**
 * A command's output, to be read to its end. @returns undefined if it wrote more than `maxOutputBytes`
 * @throws SandboxUnavailable if it failed, and while it is read if it is gone
 */
export async function readOutput(
  sandbox: CommandSandbox,
  what: string,
  order: Order & { readonly maxOutputBytes: number },
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const state = await runOwn(sandbox, command(order));
  if (state.outBytes > state.outKept || state.outBytes > order.maxOutputBytes) {
    await sandbox.discard(state.id);
    return undefined;
  }
  if (state.kind !== "exited" || state.exitCode !== 0) await textOf(sandbox, what, state);
  return thenDiscarded(sandbox, state);
}

async function* thenDiscarded(sandbox: CommandSandbox, state: CommandState): AsyncGenerator<Uint8Array> {
  try {
    yield* wholeOutput(sandbox, state);
  } finally {
    await sandbox.discard(state.id);
  }
}

async function textOf(sandbox: CommandSandbox, what: string, state: CommandState): Promise<string> {
  const end = await endOf(sandbox, state);
  if ("out" in end) return end.out;
  throw retryable(
    "SandboxUnavailable",
    `Git in the sandbox could not ${what} (${end.how}): ${gitReason(end.words)}. Nothing is lost; it is tried again.`,
  );
}
