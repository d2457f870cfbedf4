import { z } from "zod";
import { cutChars } from "../text/cut.ts";
import { detectImageType } from "../store/media.ts";
import type { ToolLimits } from "../contract/tools.ts";
import { formWords, type FoundText, readText } from "../text/encoding.ts";
import { accepted, failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { showName, showSize, workspacePath } from "./paths.ts";
import { byLook } from "./real-path.ts";
import { notUtf8 } from "./text-file.ts";
import { runOnPath } from "./sandbox-program.ts";

const input = z.strictObject({
  path: z.string().describe("Relative to /workspace, or absolute inside it."),
  offset: z.number().int().min(1).optional().describe("First line, from 1."),
  limit: z.number().int().min(1).optional(),
});

/** Enough to distinguish text from binary, and to recognise an image by its magic number. */
const SNIFF_BYTES = 8_192;
/** Files up to this size are read from the sandbox whole. */
const WHOLE_BYTES = 1_048_576;
/** Most bytes read from the sandbox for one page of a larger file: 2,000 lines of 2,000 characters. */
const PAGE_BYTES = 4_194_304;
/** Characters reserved for the line that says which page this is. */
const NOTE_CHARS = 500;

export const readFile = typedTool({
  name: "read_file",
  description:
    "Reads a text file. Shows each line as its number, a tab and its text: leave out number and tab when you quote it in " +
    "edit_file. At most 2,000 lines per call, and 2,000 characters per line.",
  input,
  readOnly: true,
  about: (request) => request.path,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path).relative;
  const { files } = await context.sandbox();
  const file = await byLook(files, where, (at) => files.read(at, { offset: 0, maxBytes: WHOLE_BYTES }));
  const { path } = file;
  const start = accepted(file.answer, {
    "not-a-file": "Use list_directory for a folder.",
    "not-found": "Look for it with glob_files or list_directory.",
  });
  const name = showName(path);
  if (start.size === 0) return { text: `(${name} is empty)` };
  const isWhole = start.bytes.length >= start.size;
  const content = readText(start.bytes, !isWhole);
  const refusal = binaryHint(name, start, content);
  if (refusal !== undefined) return failure(refusal);

  const { offset = 1, limit = context.limits.maxLines } = request;
  const excerpt =
    isWhole && content.kind !== "binary"
      ? linesOf(content.text, offset)
      : await linesInside(context, path, { offset, label: labelOf(content) });
  const { lines, total } = excerpt;
  if (lines.length === 0) return failure(`${name} has ${total} lines; line ${offset} is beyond its end.`);
  const page = takePage(lines, limit, context.limits);
  const last = offset + page.length - 1;
  const notes = [
    positionNote({ ...excerpt, offset, last, size: start.size }),
    lines.slice(0, page.length).some((line) => line.endsWith("\r")) ? "lines end in CRLF" : "",
    encodingNote(content),
    zerosNote(page),
  ].filter((note) => note !== "");
  const body = page.map((line, index) => `${offset + index}\t${line}`).join("\n");
  const below = [...(notes.length === 0 ? [] : [`(${notes.join("; ")})`]), file.remark ?? ""].filter(
    (line) => line !== "",
  );
  return { text: below.length === 0 ? body : `${body}\n\n${below.join("\n")}` };
}

/** The sanitizer shows them so. */
function zerosNote(page: readonly string[]): string {
  const count = zerosIn(page.join("\n"));
  return count === 0 ? "" : `${count} zero ${count === 1 ? "byte" : "bytes"}, shown as \u2400`;
}

const zerosIn = (text: string): number => text.split("\0").length - 1;

/** Text may have some zero bytes, as a list of names for `xargs -0` has; other control characters make it data. */
function isReadable(text: string): boolean {
  const head = text.slice(0, SNIFF_BYTES);
  const zeros = zerosIn(head);
  // oxlint-disable-next-line no-control-regex -- they are what this is about
  const controls = head.match(/[\u0001-\u0007\u000e-\u001a\u001c-\u001f]/g)?.length ?? 0;
  return zeros === 0 || (zeros <= head.length / 4 && controls <= zeros && controls <= head.length / 100);
}

function encodingNote(content: FoundText): string {
  if (content.kind === "text") return formWords(content.form) ?? "";
  const how =
    content.kind === "guessed" && content.name !== undefined
      ? "shown as that; edit_file and apply_patch do not write it: use bash"
      : "what is not UTF-8 is shown as \uFFFD";
  return `${notUtf8(content)}: ${how}`;
}

/** What decodes the text elsewhere; undefined: it is UTF-8, or cannot be decoded. */
function labelOf(content: FoundText): string | undefined {
  if (content.kind === "text") return content.form.encoding === "utf-8" ? undefined : content.form.encoding;
  return content.kind === "guessed" ? content.label : undefined;
}

interface FoundLines {
  readonly lines: readonly string[];
  /** Lines of the whole file; undefined if its end was not seen. */
  readonly total: number | undefined;
  /** The only line is just the beginning of a very long one. */
  readonly isPart?: boolean;
}

/** Lines from `offset` on; the text's first line has number `first`. */
function linesOf(text: string, offset: number, first = 1): { lines: string[]; total: number } {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return { lines: lines.slice(offset - first), total: lines.length + first - 1 };
}

// Lines of a large file are located inside the sandbox, where 1 GB takes a second, rather than by reading the file
// out.
const PAGE_SCRIPT = `[ -f "$target" ] || exit 95
encoding=$4
text() { if [ -z "$encoding" ]; then cat -- "$target"; else iconv -c -f "$encoding" -t utf-8 -- "$target"; fi; }
if [ "$3" = count ]; then text | wc -l; else text | tail -n "+$2" | head -c ${PAGE_BYTES}; fi
`;

async function linesInside(
  context: ToolContext,
  path: string,
  { offset, label }: { readonly offset: number; readonly label: string | undefined },
): Promise<FoundLines> {
  const ask = (what: string) =>
    runOnPath(context, PAGE_SCRIPT, [path, String(offset), what, label ?? ""], PAGE_BYTES);
  const { out } = await ask("lines");
  if (out.length === 0) {
    const count = (await ask("count")).out.toString("latin1");
    return { lines: [], total: Number(count) };
  }
  const { lines, total } = linesOf(new TextDecoder().decode(out), offset, offset);
  if (out.length < PAGE_BYTES) return { lines, total };
  // The bytes end before the file does: the last line is incomplete.
  const isPart = lines.length === 1;
  return { lines: isPart ? lines : lines.slice(0, -1), total: undefined, isPart };
}

/** Whole lines up to the limits, at least one; a long line is cut off. */
function takePage(lines: readonly string[], limit: number, limits: ToolLimits): string[] {
  const page: string[] = [];
  let chars = 0;
  for (const line of lines.slice(0, Math.min(limit, limits.maxLines))) {
    const text = shortened(line.endsWith("\r") ? line.slice(0, -1) : line, limits.maxLineChars);
    chars += text.length + 8;
    if (page.length > 0 && chars > limits.maxChars - NOTE_CHARS) break;
    page.push(text);
  }
  return page;
}

function shortened(line: string, maxChars: number): string {
  if (line.length <= maxChars) return line;
  return `${cutChars(line, maxChars)}… [line cut: ${line.length.toLocaleString("en-US")} characters]`;
}

function positionNote(
  page: FoundLines & { readonly offset: number; readonly last: number; readonly size: number },
): string {
  const { offset, last, total } = page;
  if (page.isPart === true) return `line ${last} continues: read parts of it with bash (cut -c, jq)`;
  if (last !== total)
    return `lines ${offset}-${last} of a file of ${showSize(page.size)}; continue with offset=${last + 1}`;
  return offset > 1 ? `end of the file: ${total} lines` : "";
}

function binaryHint(
  name: string,
  { bytes, size }: { readonly bytes: Uint8Array; readonly size: number },
  content: FoundText,
): string | undefined {
  const image = detectImageType(bytes.subarray(0, SNIFF_BYTES));
  if (image !== undefined)
    return `${name} is an image (${image}, ${showSize(size)}): look at it with view_image.`;
  if (content.kind === "guessed" || (content.kind === "text" && isReadable(content.text))) return undefined;
  return `${name} is a binary file (${showSize(size)}), which read_file does not show. Look at it with bash: file, strings, xxd | head.`;
}
