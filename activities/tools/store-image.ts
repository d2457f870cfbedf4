/** Prepares an image for the model. */
import type { FilePart } from "../contract/message.ts";
import { imageTypeOf, mediaSize } from "../store/media.ts";
import { withoutMetadata } from "./image-metadata.ts";
import type { ToolContext } from "./tool.ts";

/** Largest image shown. Source: Anthropic accepts 5 MiB of base64, which are 3.93 MB of bytes; others accept more. */
export const MAX_IMAGE_BYTES = 3_900_000;
/**
 * Limit of the longer side. Source: Anthropic's refusal, "exceed max allowed size: 8000 pixels"; others shrink the
 * image themselves.
 */
const MAX_PIXELS = 8_000;

/** Stores an image without its metadata. @returns the reason if it is not shown */
export async function storeImage(
  bytes: Uint8Array,
  name: string,
  { memory, maskWindow }: Pick<ToolContext, "memory" | "maskWindow">,
): Promise<FilePart | string> {
  const mediaType = imageTypeOf(bytes);
  if (mediaType === undefined) return `${name} changed while it was read. Try again.`;
  const { width = 0, height = 0 } = mediaSize(bytes, mediaType, () => undefined);
  if (Math.max(width, height) > MAX_PIXELS)
    return `${name} is ${width} × ${height} pixels; at most ${MAX_PIXELS} on a side can be shown. Make a smaller one first, with bash.`;
  // Metadata is text that neither the model nor a mask would see.
  const picture = withoutMetadata(bytes, mediaType);
  if (picture === undefined)
    return `${name} is a damaged image: its parts do not fit together. Make it again, with bash.`;
  const latin = Buffer.from(picture).toString("latin1");
  if (maskWindow(latin, 0, latin.length) !== latin)
    return `${name} is not shown: its bytes contain a secret of this installation.`;
  return memory.saveBlob(picture, mediaType);
}
