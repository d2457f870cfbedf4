import { z } from "zod";
import { failure } from "./failure.ts";
import { oneLine } from "./paths.ts";
import { typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  handle: z.string().describe("Handle of the output, such as s12c0, from a truncation or clearing notice."),
  offset: z.number().int().min(0).optional().describe("First character to show, counted from 0. Default 0."),
  limit: z.number().int().min(1).optional().describe("How many characters. Default and at most 29,500."),
});

/** Characters reserved for the line that says which page this is. */
const NOTE_CHARS = 500;

export const readOutput = typedTool({
  name: "read_output",
  description:
    "Reads the whole output of an earlier tool call whose result was truncated or cleared, page by page, also after a restart.",
  input,
  readOnly: true,
  about: (given) => given.handle,
  run,
});

async function run(given: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const offset = given.offset ?? 0;
  const room = Math.max(1, context.limits.maxChars - NOTE_CHARS);
  const page = await context.memory.readOutput(given.handle, offset, Math.min(given.limit ?? room, room));
  if (page === undefined) {
    return failure(
      `There is no output with the handle "${oneLine(given.handle, 60)}". Handles look like s12c0; the notice of a truncated or cleared result gives its handle.`,
    );
  }
  if (offset >= page.total && page.total > 0) {
    return failure(
      `The output "${given.handle}" has ${page.total} characters; offset ${offset} is beyond its end.`,
    );
  }
  const { end } = page;
  const more = end < page.total ? `; continue with offset=${end}` : "; end of the output";
  return { text: `${page.text}\n[characters ${offset}-${end} of ${page.total}${more}]` };
}
