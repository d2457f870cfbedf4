import { z } from "zod";
import { describeState, noSuchCommand } from "./bash-output.ts";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  id: z.string(),
});

/** A server gets this much time to close its files. */
const GRACE_MS = 2_000;

export const killProcess = typedTool({
  name: "kill_process",
  description: "Ends a background command and the processes that it started.",
  input,
  readOnly: false,
  about: (given) => given.id,
  run,
});

async function run(given: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const sandbox = await context.sandbox();
  const before = await sandbox.state(given.id);
  if (before === undefined) return failure(await noSuchCommand(sandbox, given.id));
  if (before.kind !== "running") {
    // The command has ended, but processes left in its group are killed.
    await sandbox.kill(given.id, GRACE_MS);
    return { text: `"${given.id}" had ended before: ${describeState(before)}.` };
  }
  const after = await sandbox.kill(given.id, GRACE_MS);
  return { text: `"${given.id}": ${describeState(after)}. Its output: bash_output id="${given.id}".` };
}
