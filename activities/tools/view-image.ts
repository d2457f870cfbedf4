import { z } from "zod";
import { pictureSource, pythonArguments } from "../sandbox/agent/sources.ts";
import { detectImageType, isPdf } from "../store/media.ts";
import { showName, showSize, workspacePath } from "./paths.ts";
import { byLook } from "./real-path.ts";
import { runOnPath } from "./sandbox-program.ts";
import { MAX_IMAGE_BYTES, storeImage } from "./store-image.ts";
import { accepted, failure, ToolFailure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  path: z.string(),
  page: z.number().int().min(1).optional().describe("Of a PDF."),
  region: z
    .string()
    .regex(/^\s*\d+\s*,\s*\d+\s*,\s*[1-9]\d*\s*,\s*[1-9]\d*\s*$/, "must be x,y,width,height in pixels")
    .optional()
    .describe("x,y,width,height"),
});
type Request = z.infer<typeof input>;

export const viewImage = typedTool({
  name: "view_image",
  description: "Shows you a picture, or a PDF's page with its text; large ones scaled or in parts.",
  input,
  readOnly: true,
  about: (request) => request.path,
  run,
});

/** No Pillow, and no Python at all. Source: agent/picture.py, the shell. */
const NO_PILLOW = [95, 126, 127];
const VARIABLE = "LONGHAUL_PICTURE";
/** The program's loader, for an interpreter that also finds what the image installed. */
const LOAD = pythonArguments(VARIABLE).at(-1) ?? "";
/** The image's own Python, also if a tool has put another one first in the path. */
const SCRIPT = `
for python in python3 /usr/bin/python3; do
  ${VARIABLE}=$2 "$python" -I -c "$3" "$target" "$4" "$5"
  code=$?
  case $code in ${NO_PILLOW.join("|")}) ;; *) exit $code ;; esac
done
exit 95
`;
/** Of the line about the picture: a page has 100,000 characters of text at most, each at most 12 bytes as JSON. */
const MAX_FACTS_BYTES = 1_300_000;
const LACKS_PILLOW =
  "the sandbox's image lacks Pillow. Install it (`pip install pillow`), or have python3-pil and poppler-utils in the image";

/** What agent/picture.py prints; sizes and places in pixels. */
interface PictureFacts {
  readonly refused?: string;
  readonly source?: readonly [width: number, height: number];
  readonly size?: readonly [width: number, height: number];
  readonly page?: number;
  readonly pages?: number;
  readonly frame?: number;
  readonly frames?: number;
  readonly box?: readonly number[];
  readonly tile?: number;
  readonly tiles?: number;
  readonly next?: readonly number[] | null;
  readonly text?: string;
}

async function run(request: Request, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path).relative;
  const { page, region = "" } = request;
  const args = [pictureSource, LOAD, page === undefined ? "" : String(page), region.replace(/\s/g, "")];
  const end = await runOnPath(context, SCRIPT, [where, ...args], MAX_IMAGE_BYTES + MAX_FACTS_BYTES);
  const name = showName(end.path);
  if (NO_PILLOW.includes(end.exitCode)) return withoutPillow(request, context);
  const cut = end.out.indexOf("\n");
  if (end.exitCode !== 0 || cut < 0)
    return failure(
      `${name} could not be opened: ${end.err.trim().split("\n").at(-1) ?? "no reason was given"}`,
    );
  // Cast safely: our own program prints nothing else.
  const facts = JSON.parse(end.out.subarray(0, cut).toString("utf8")) as PictureFacts;
  if (facts.refused !== undefined) return failure(`${name} ${facts.refused}.`);
  const bytes = end.out.subarray(cut + 1);
  const stored = await storeImage(bytes, name, context);
  if (typeof stored === "string") return failure(stored);
  const about = `${name} (${stored.mediaType}, ${showSize(bytes.length)}${sizeNote(facts)})`;
  const lines = [about, ...notesOf(facts), end.remark ?? ""];
  return { text: lines.filter((line) => line !== "").join("\n"), files: [stored] };
}

const sized = (size: readonly number[] = []): string => size.join(" × ");

function sizeNote({ source, size, box }: PictureFacts): string {
  if (size === undefined) return "";
  if (box !== undefined) return `, region=${box.join(",")} of ${sized(source)} pixels`;
  return `, ${sized(size)} pixels${sized(source) === sized(size) ? "" : `, scaled from ${sized(source)}: region= shows a part of that`}`;
}

function notesOf({ page, pages, frame, frames, tile, tiles, next, text }: PictureFacts): string[] {
  const notes: string[] = [];
  if (tile !== undefined && tiles !== undefined)
    notes.push(
      next
        ? `[${tile} of ${tiles}; ${tile + 1} of ${tiles}, region=${next.join(",")} shows the next]`
        : `[${tile} of ${tiles}, the last]`,
    );
  if (frames !== undefined) notes.push(`[frame ${frame} of ${frames}: page= shows another]`);
  if (pages !== undefined) {
    notes.push(`[page ${page} of ${pages}]`);
    notes.push(text ? `Its text:\n${text}` : "[this page has no text: it may be scanned]");
  }
  return notes;
}

const CHUNK_BYTES = 1_048_576;

/** A picture that needs no change is shown all the same. */
async function withoutPillow(request: Request, context: ToolContext): Promise<ToolResult> {
  const { files } = await context.sandbox();
  const where = workspacePath(request.path).relative;
  const { path, remark } = await byLook(files, where, (at) => files.stat(at));
  const name = showName(path);
  const parts: Uint8Array[] = [];
  for (let got = 0, size = 1; got < size;) {
    const read = accepted(await files.read(path, { offset: got, maxBytes: CHUNK_BYTES }));
    size = read.size;
    if (got === 0 && isPdf(read.bytes)) throw new ToolFailure(`${name} is a PDF, and ${LACKS_PILLOW}.`);
    if (got === 0 && detectImageType(read.bytes) === undefined)
      return failure(
        `${name} is not a PNG, JPEG, GIF or WebP image, going by its content, and ${LACKS_PILLOW}. For text use read_file.`,
      );
    if (request.page !== undefined || request.region !== undefined)
      return failure(`A page or region of ${name} cannot be shown: ${LACKS_PILLOW}.`);
    if (size > MAX_IMAGE_BYTES)
      return failure(
        `${name} has ${showSize(size)}; at most ${showSize(MAX_IMAGE_BYTES)} can be shown as it is, and ${LACKS_PILLOW}.`,
      );
    if (read.bytes.length === 0) break;
    parts.push(read.bytes);
    got += read.bytes.length;
  }
  const bytes = Buffer.concat(parts);
  const stored = await storeImage(bytes, name, context);
  if (typeof stored === "string") return failure(stored);
  const text = `${name} (${stored.mediaType}, ${showSize(bytes.length)})`;
  return { text: remark === undefined ? text : `${text}\n${remark}`, files: [stored] };
}
