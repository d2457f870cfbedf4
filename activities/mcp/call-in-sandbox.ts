/** A call to a server in the sandbox. */
import { SandboxLost } from "../sandbox/sandbox-lost.ts";
import { LeaveRunning } from "../tools/failure.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import { failedCall, unknownEnd, withNotice } from "./call-outcome.ts";
import { converse, type Line } from "./converse.ts";
import type { McpCall } from "./mcp.ts";
import { listTools } from "./protocol-client.ts";
import {
  clientFor,
  greetNew,
  runningProgram,
  withLastOutput,
  type Program,
  type SandboxServer,
} from "./sandbox-servers.ts";

/**
 * The program continues when a worker is lost: the next attempt finds its answer or waits for it. The outcome is
 * `unknown` if the program that received the call is gone.
 */
export async function callInSandbox(call: McpCall, context: ToolContext): Promise<ToolResult> {
  const { server, isRepeatable, state, task } = call;
  const { signal } = context;
  const of: SandboxServer = { ...server, sandbox: await context.sandbox() };
  let program: Program;
  try {
    program = await runningProgram(of);
    const isOther = state.sent !== undefined && state.sent !== program.key;
    if ((isOther && !isRepeatable) || (task !== undefined && program.isNew))
      return unknownEnd(
        call,
        `the program of the server ${server.name} that got it is gone, and a new one was started`,
      );
    if (program.isNew) await greetAgain(of, call, signal);
  } catch (error) {
    return notSent(call, error, signal);
  }
  const result = await converse(call, context, lineTo(of, program, call, context));
  return program.isNew ? withNotice(server.name, result) : result;
}

/** A restarted program may have different tools. */
async function greetAgain(of: SandboxServer, { era, onListed }: McpCall, signal: AbortSignal): Promise<void> {
  const client = await greetNew(of, { era, signal });
  try {
    await onListed(await listTools(client, { timeout: of.settings.startTimeout, signal }));
  } finally {
    await client.close();
  }
}

function lineTo(of: SandboxServer, program: Program, { era, state }: McpCall, { signal }: ToolContext): Line {
  let isConnected = false;
  return {
    mark: program.key,
    async exchange(prefix, body) {
      // An answer to an earlier attempt may be there already.
      const from = state.sent === program.key ? 0 : program.printed;
      const { client, transport } = await clientFor(of, program, { prefix, from, era, signal });
      isConnected = true;
      try {
        return await body(client);
      } catch (error) {
        if (transport.failure === undefined || signal.aborted) throw error;
        throw isLost(transport.failure)
          ? transport.failure
          : await withLastOutput(of.sandbox, program.id, transport.failure);
      } finally {
        await client.close();
      }
    },
    isLost,
    isUnsent: () => !isConnected,
  };
}

function notSent(call: McpCall, error: unknown, signal: AbortSignal): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  if (isLost(error)) throw error;
  return failedCall(call, error, { isSent: false, isStopped: signal.aborted });
}

const isLost = (error: unknown): error is SandboxLost => error instanceof SandboxLost;
