import { z } from "zod";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine } from "./paths.ts";

const input = z.strictObject({
  handle: z.string().describe("From the notice in that result."),
  offset: z.number().int().min(0).optional().describe("First character, from 0."),
  limit: z.number().int().min(1).optional().describe("At most 29,500."),
});

/** Characters reserved for the line that says which page this is. */
const NOTE_CHARS = 500;

export const readOutput = typedTool({
  name: "read_output",
  description: "Reads the output of an earlier call whose result was cut or cleared, by pages.",
  input,
  readOnly: true,
  about: (request) => request.handle,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const offset = request.offset ?? 0;
  const room = Math.max(1, context.limits.maxChars - NOTE_CHARS);
  const page = await context.memory.readOutput(request.handle, offset, Math.min(request.limit ?? room, room));
  if (page === undefined) {
    return failure(
      `There is no output with the handle "${oneLine(request.handle, 60)}". Only a result that was cut or cleared has one, in its notice. Results without such a notice were shown whole.`,
    );
  }
  if (offset >= page.total && page.total > 0) {
    return failure(
      `The output "${request.handle}" has ${page.total} characters; offset ${offset} is beyond its end.`,
    );
  }
  const { end } = page;
  const more = end < page.total ? `; continue with offset=${end}` : "; end of the output";
  return { text: `${page.text}\n[characters ${offset}-${end} of ${page.total}${more}]` };
}
