import { z } from "zod";
import { failure, withHint } from "./failure.ts";
import { imageTypeOf } from "./image-type.ts";
import { readLines } from "./line-reader.ts";
import { oneLine, showName, showSize, workspacePath } from "./paths.ts";
import { defineTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  path: z.string().describe("File to read, relative to /workspace or absolute inside it."),
  offset: z.number().int().min(1).optional().describe("First line to show, counted from 1. Default 1."),
  limit: z.number().int().min(1).optional().describe("How many lines to show. Default and at most 2,000."),
});
export type ReadFileInput = z.infer<typeof input>;

/** Enough to tell text from binary, and an image by its magic number. */
const SNIFF_BYTES = 8_192;

export const readFile = defineTool<ReadFileInput>({
  name: "read_file",
  description:
    "Reads a text file. Each line comes as its number, a tab and its text: leave number and tab out when you quote " +
    "the line in edit_file. At most 2,000 lines a call (offset and limit page through more) and 2,000 characters a " +
    "line. Images: view_image. Folders: list_directory.",
  input,
  readOnly: true,
  about: (given) => oneLine(given.path, 60),
  timeoutMs: (_given, limits) => limits.timeoutMs,
  run: run,
});

async function run(given: ReadFileInput, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(given.path);
  if (!where.ok) return failure(where.message);
  const { files } = await context.sandbox();
  const first = await files.read(where.relative, { offset: 0, maxBytes: 1_048_576 });
  if (!first.ok) return failure(readHint(first.reason, first.message));
  const name = showName(where.relative);
  if (first.size === 0) return { text: `(${name} is empty)` };
  const refusal = binaryHint(name, first.bytes.subarray(0, SNIFF_BYTES), first.size);
  if (refusal !== undefined) return failure(refusal);

  const { limits } = context;
  const offset = given.offset ?? 1;
  const page = await readLines({
    first: first.bytes,
    size: first.size,
    readAt: async (at, maxBytes) => {
      const next = await files.read(where.relative, { offset: at, maxBytes });
      return next.ok ? next.bytes : new Uint8Array();
    },
    offset,
    maxLines: Math.min(given.limit ?? limits.maxLines, limits.maxLines),
    maxLineChars: limits.maxLineChars,
    maxChars: limits.maxChars - 500,
  });
  if (page.lines.length === 0) {
    return failure(
      page.seekStopped
        ? `Line ${offset} lies deep in ${name} (${showSize(first.size)}): show it with bash: sed -n '${offset},${offset + 99}p' FILE`
        : `${name} has ${page.linesSeen} lines; line ${offset} is beyond its end.`,
    );
  }
  const last = offset + page.lines.length - 1;
  const body = page.lines.map((line, index) => `${offset + index}\t${line}`).join("\n");
  return { text: `${body}${footer(page, offset, last, first.size)}` };
}

function footer(
  page: { ended: boolean; linesSeen: number; longLine: boolean; crlf: boolean },
  offset: number,
  last: number,
  size: number,
): string {
  const notes: string[] = [];
  if (page.longLine) notes.push(`line ${last} goes on: see parts of it with bash (cut -c, jq)`);
  else if (!page.ended)
    notes.push(`lines ${offset}-${last} of a file of ${showSize(size)}; go on with offset=${last + 1}`);
  else if (offset > 1) notes.push(`end of the file: ${page.linesSeen} lines`);
  if (page.crlf) notes.push("lines end in CRLF");
  return notes.length === 0 ? "" : `\n\n(${notes.join("; ")})`;
}

function readHint(reason: string, message: string): string {
  if (reason === "not-a-file") return withHint(message, "A folder is shown by list_directory.");
  if (reason === "not-found") return withHint(message, "Look for it with glob_files or list_directory.");
  return message;
}

function binaryHint(name: string, head: Uint8Array, size: number): string | undefined {
  const image = imageTypeOf(head);
  if (image !== undefined)
    return `${name} is an image (${image}, ${showSize(size)}): look at it with view_image.`;
  if (!head.includes(0)) return undefined;
  return `${name} is a binary file (${showSize(size)}), which read_file does not show. Look at it with bash: file, strings, xxd | head.`;
}
