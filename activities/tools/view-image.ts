import { z } from "zod";
import { accepted, failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { detectImageType } from "../store/media.ts";
import { byLook } from "./real-path.ts";
import { showName, showSize, workspacePath } from "./paths.ts";
import { MAX_IMAGE_BYTES as MAX_BYTES, storeImage } from "./store-image.ts";

const input = z.strictObject({
  path: z.string(),
});

const CHUNK_BYTES = 1_048_576;

export const viewImage = typedTool({
  name: "view_image",
  description: "Shows you a PNG, JPEG, GIF or WebP file, at most 3.9 MB and 8,000 pixels on a side.",
  input,
  readOnly: true,
  about: (request) => request.path,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const where = workspacePath(request.path).relative;
  const { files } = await context.sandbox();
  const { path, remark } = await byLook(files, where, (at) => files.stat(at));
  const name = showName(path);
  const parts: Uint8Array[] = [];
  for (let got = 0, size = 1; got < size;) {
    const read = accepted(await files.read(path, { offset: got, maxBytes: CHUNK_BYTES }));
    size = read.size;
    if (got === 0 && detectImageType(read.bytes) === undefined) {
      return failure(
        `${name} is not a PNG, JPEG, GIF or WebP image, going by its content. For text use read_file.`,
      );
    }
    if (size > MAX_BYTES) {
      return failure(
        `${name} has ${showSize(size)}; at most ${showSize(MAX_BYTES)} can be shown. Make a smaller one first, with bash.`,
      );
    }
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
