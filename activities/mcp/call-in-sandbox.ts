/** A call to a server in the sandbox. */
import { LeaveRunning } from "../tools/failure.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import { failedCall, unknownEnd } from "./call-outcome.ts";
import type { McpCall } from "./mcp.ts";
import { callTool } from "./protocol-client.ts";
import { toolResult } from "./results.ts";
import {
  clientFor,
  greetNew,
  runningProgram,
  told,
  type Program,
  type SandboxServer,
} from "./sandbox-servers.ts";

/**
 * The program goes on when a worker is lost: the next attempt finds its answer, or waits for it. It is `unknown` where the
 * program that got the call is gone.
 */
export async function callInSandbox(call: McpCall, context: ToolContext): Promise<ToolResult> {
  const { server, era, isRepeatable } = call;
  const { signal } = context;
  const of: SandboxServer = { ...server, sandbox: await context.sandbox() };
  let program: Program;
  try {
    program = await runningProgram(of);
    const isOther = call.state !== undefined && call.state !== program.key;
    if (isOther && !isRepeatable)
      return unknownEnd(
        call,
        `the program of the server ${server.name} that got it is gone, and a new one was started`,
      );
    if (program.isNew) await (await greetNew(of, { era, signal })).close();
  } catch (error) {
    return notSent(call, error, signal);
  }
  await call.keepState(program.key);
  const result = await exchanged(call, of, program, context);
  return program.isNew ? withNotice(server.name, result) : result;
}

async function exchanged(
  call: McpCall,
  of: SandboxServer,
  program: Program,
  context: ToolContext,
): Promise<ToolResult> {
  const { server, entry, input, era } = call;
  const { signal, onProgress } = context;
  // An answer to an earlier attempt may be there already.
  const from = call.state === program.key ? 0 : program.printed;
  let opened: Awaited<ReturnType<typeof clientFor>>;
  try {
    opened = await clientFor(of, program, { prefix: context.callKey, from, era, signal });
  } catch (error) {
    return notSent(call, error, signal);
  }
  const { client, transport } = opened;
  try {
    const limits = { settings: server.settings, signal, onProgress: (note: string) => onProgress(0, note) };
    return await toolResult(await callTool(client, entry, input, limits), context);
  } catch (error) {
    if (signal.reason instanceof LeaveRunning) throw signal.reason;
    if (isLost(transport.failure)) throw transport.failure;
    const reason =
      transport.failure === undefined ? error : await told(of.sandbox, program.id, transport.failure);
    return failedCall(call, reason, { isSent: true, isStopped: signal.aborted });
  } finally {
    await client.close();
  }
}

function notSent(call: McpCall, error: unknown, signal: AbortSignal): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  if (isLost(error)) throw error;
  return failedCall(call, error, { isSent: false, isStopped: signal.aborted });
}

const isLost = (error: unknown): error is Error => error instanceof Error && error.name === "SandboxLost";

/** Never silently a fresh one. */
function withNotice(name: string, result: ToolResult): ToolResult {
  const notice = `[The server ${name} was started anew for this call: what its program before had in memory is gone.]`;
  return { ...result, text: `${notice}\n${result.text}` };
}
