import { z } from "zod";
import { RESOLVE_TARGET, runProgram } from "./sandbox-program.ts";
import { failure, withHint } from "./failure.ts";
import { imageTypeOf } from "../contract/image-type.ts";
import { type LinePage, type LineRequest, readLines } from "./line-reader.ts";
import { oneLine, showName, showSize, workspacePath } from "./paths.ts";
import { defineTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  path: z.string().describe("File to read, relative to /workspace or absolute inside it."),
  offset: z.number().int().min(1).optional().describe("First line to show, counted from 1. Default 1."),
  limit: z.number().int().min(1).optional().describe("How many lines to show. Default and at most 2,000."),
});
type ReadFileInput = z.infer<typeof input>;

/** Enough to tell text from binary, and an image by its magic number. */
const SNIFF_BYTES = 8_192;
/** Most that leaves the sandbox for one page: 2,000 lines of 2,000 characters. */
const DEEP_BYTES = 4_194_304;
/** Room for the line that says which page this is. */
const NOTE_CHARS = 500;

export const readFile = defineTool<ReadFileInput>({
  name: "read_file",
  description:
    "Reads a text file. Each line comes as its number, a tab and its text: leave number and tab out when you quote " +
    "the line in edit_file. At most 2,000 lines a call (offset and limit page through more) and 2,000 characters a " +
    "line. Images: view_image. Folders: list_directory.",
  input,
  readOnly: true,
  about: (given) => oneLine(given.path, 60),
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
  const room = {
    maxLines: Math.min(given.limit ?? limits.maxLines, limits.maxLines),
    maxLineChars: limits.maxLineChars,
    maxChars: limits.maxChars - NOTE_CHARS,
  };
  const page =
    first.bytes.length < first.size && offset > newlinesIn(first.bytes)
      ? await readDeep(context, where.relative, offset, room)
      : await readLines({
          ...room,
          first: first.bytes,
          size: first.size,
          readAt: async (at, maxBytes) => {
            const next = await files.read(where.relative, { offset: at, maxBytes });
            return next.ok ? next.bytes : new Uint8Array();
          },
          offset,
        });
  if (page.lines.length === 0)
    return failure(`${name} has ${page.linesSeen} lines; line ${offset} is beyond its end.`);
  const body = page.lines.map((line, index) => `${offset + index}\t${line}`).join("\n");
  return { text: `${body}${footer(page, offset, first.size)}` };
}

// Lines far into a large file: found inside the sandbox, where 1 GB takes a second, not by carrying the file out.
const DEEP_SCRIPT = `${RESOLVE_TARGET}
[ -f "$target" ] || exit 95
if [ "$3" = count ]; then wc -l < "$target"; else tail -n "+$2" -- "$target" | head -c ${DEEP_BYTES}; fi
`;

async function readDeep(
  context: ToolContext,
  path: string,
  offset: number,
  room: Pick<LineRequest, "maxLines" | "maxLineChars" | "maxChars">,
): Promise<LinePage> {
  const found = await runProgram(context, DEEP_SCRIPT, [path, String(offset), "lines"], DEEP_BYTES);
  if (found.out.length === 0) {
    const counted = await runProgram(context, DEEP_SCRIPT, [path, String(offset), "count"], DEEP_BYTES);
    const linesSeen = Number(counted.out.toString("latin1"));
    return { lines: [], ended: true, linesSeen, longLine: false, crlf: false };
  }
  const page = await readLines({
    ...room,
    first: found.out,
    size: found.out.length,
    readAt: async () => new Uint8Array(),
    offset: 1,
  });
  const linesSeen = page.linesSeen + offset - 1;
  if (found.out.length < DEEP_BYTES || !page.ended) return { ...page, linesSeen };
  // The end that was reached is not the file's: the last line is a part of one.
  const lines = page.lines.length > 1 ? page.lines.slice(0, -1) : page.lines;
  return { ...page, lines, linesSeen, ended: false, longLine: page.lines.length === 1 };
}

function newlinesIn(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}

function footer(page: LinePage, offset: number, size: number): string {
  const last = offset + page.lines.length - 1;
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
