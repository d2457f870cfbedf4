/** Calls one of the operator's own tools, in the worker's process. */
import { SandboxLost, type Sandbox } from "../../sandbox/sandbox.ts";
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { reasonOf } from "../../contract/errors.ts";
import { readBytes } from "../../sandbox/command-output.ts";
import { describeInput } from "../describe-input.ts";
import { accepted, failure, LeaveRunning, ToolFailure } from "../failure.ts";
import { workspacePath } from "../paths.ts";
import type { ToolContext, ToolResult } from "../tool.ts";
import type { ToolSandbox } from "./define-tool.ts";
import { ownTool, type OwnTool } from "./own-tools.ts";

const MAX_BYTES = 1024 * 1024;
const GRACE_MS = 200;

const answer = z.union([
  z.string().transform((text) => ({ text })),
  z.object({ text: z.string(), isError: z.boolean().default(false) }),
]);

/** Identifies the call: the key for external services is the same for each attempt. */
export interface Caller {
  readonly sessionId: string;
  readonly idempotencyKey: string;
}

/**
 * Runs the tool. A call that may have started already is not repeated, unless the tool only reads.
 * @throws LeaveRunning if the worker ends; SandboxLost
 */
export async function callOwnTool(
  tool: OwnTool,
  caller: Caller,
  input: Record<string, unknown>,
  context: ToolContext,
): Promise<ToolResult> {
  const { name, readOnly } = tool;
  if (context.resumed && !readOnly)
    return unknownEnd(name, "the worker that ran it was lost before it had a result");
  const parsed = await tool.input.safeParseAsync(input);
  if (!parsed.success) return failure(describeInput(ownTool(tool.entry), parsed.error));
  const timeout = new AbortController();
  const signal = AbortSignal.any([context.signal, timeout.signal]);
  const timer = setTimeout(() => timeout.abort(new Error("the time of this call is over")), tool.timeoutMs);
  // On abort the tool is signalled, but its end is not awaited: the outcome is unknown either way.
  const aborted = Promise.withResolvers<undefined>();
  const onAbort = () => aborted.resolve(undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const sandbox = sandboxOf(context, signal);
    const running = (async () => tool.run(parsed.data, { ...caller, signal, sandbox }))();
    running.catch(() => undefined);
    const ended = await Promise.race([running, aborted.promise]);
    if (signal.aborted) return stopped(tool, context);
    const checked = answer.safeParse(ended);
    if (!checked.success)
      return failure(`${name} returned no answer: it must be a text, or {text, isError}.`);
    return checked.data;
  } catch (error) {
    if (error instanceof SandboxLost) throw error;
    if (signal.aborted) return stopped(tool, context);
    return failure(`${name} failed: ${reasonOf(error)}`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function stopped({ name, readOnly, timeoutMs }: OwnTool, { signal }: ToolContext): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  if (signal.aborted)
    return {
      text: `The user stopped this call. What ${name} did until then may have taken effect.`,
      interrupted: true,
    };
  const why = `it took longer than ${timeoutMs / 1_000} s, and was asked to stop`;
  return readOnly ? failure(`${name} has no result: ${why}.`) : unknownEnd(name, why);
}

const unknownEnd = (name: string, why: string): ToolResult => ({
  unknown: true,
  text: `It is not known how this call of ${name} ended: ${why}. It may have happened. It was not made again: look at what it has done before you repeat it.`,
});

function sandboxOf(context: ToolContext, signal: AbortSignal): ToolSandbox {
  const open = (): Promise<Sandbox> => {
    signal.throwIfAborted();
    return context.sandbox();
  };
  return {
    async exec(command) {
      const sandbox = await open();
      const id = `${context.callKey}-${randomBytes(4).toString("hex")}`;
      const argv = ["bash", "-c", command];
      const ran = await sandbox
        .run({ id, argv, mergeOutput: true, maxOutputBytes: MAX_BYTES }, { signal })
        .catch((error: unknown) => {
          if (!signal.aborted) throw error;
          return undefined;
        });
      const state = ran === undefined || ran.kind === "running" ? await sandbox.kill(id, GRACE_MS) : ran;
      signal.throwIfAborted();
      if (state.kind === "refused")
        throw new ToolFailure(`The command could not be started in the sandbox: ${state.reason}`);
      const bytes = await readBytes(sandbox, { id, from: 0, length: Math.min(state.outKept, MAX_BYTES) });
      await sandbox.discard(id);
      return { output: bytes.toString("utf8"), exitCode: state.kind === "exited" ? state.exitCode : null };
    },
    async readFile(path) {
      const { files } = await open();
      const read = accepted(await files.read(workspacePath(path).relative, { maxBytes: MAX_BYTES }));
      return Buffer.from(read.bytes).toString("utf8");
    },
    async writeFile(path, text) {
      const { files } = await open();
      accepted(await files.write(workspacePath(path).relative, Buffer.from(text)));
    },
  };
}
