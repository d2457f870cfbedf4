import { z } from "zod";
import { describeState, noSuchCommand } from "./bash-output.ts";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  id: z.string(),
});

/** A server gets this much time to close its files. */
const GRACE_MS = 2_000;
/** A program in a terminal is told as if its window were closed. Source: the requirements' 0.5 s to the process's end. */
const TERMINAL_GRACE_MS = 300;

export const killProcess = typedTool({
  name: "kill_process",
  description: "Ends a background command and the processes that it started.",
  input,
  readOnly: false,
  about: (request) => request.id,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const sandbox = await context.sandbox();
  const before = await sandbox.state(request.id);
  if (before === undefined) return failure(await noSuchCommand(sandbox, request.id));
  if (before.kind !== "running") {
    // The command has ended, but processes left in its group are killed.
    await sandbox.kill(request.id, GRACE_MS);
    return {
      text: `"${request.id}" had ended before: ${describeState(before)}.`,
      endedCommands: [request.id],
    };
  }
  const after = await sandbox.kill(request.id, before.terminal === undefined ? GRACE_MS : TERMINAL_GRACE_MS);
  return {
    text: `"${request.id}": ${describeState(after)}. Its output: bash_output id="${request.id}".`,
    endedCommands: after.kind === "running" ? undefined : [request.id],
  };
}
