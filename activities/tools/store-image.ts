/** An image on its way to the model. */
import type { FilePart } from "../contract/message.ts";
import { imageTypeOf } from "../contract/image-type.ts";
import { withoutMetadata } from "./image-metadata.ts";
import type { ToolContext } from "./tool.ts";

/** Largest image that is shown. Source: providers take 5 to 20 MB; Cline allows 6 MB. */
export const MAX_IMAGE_BYTES = 5_000_000;

/** Stores an image without the text next to its picture. @returns why not, if it is not shown */
export async function storeImage(
  bytes: Uint8Array,
  name: string,
  { memory, maskWindow }: Pick<ToolContext, "memory" | "maskWindow">,
): Promise<FilePart | string> {
  const mediaType = imageTypeOf(bytes);
  if (mediaType === undefined) return `${name} changed while it was read. Try again.`;
  // Data next to the picture is text that neither the model nor a mask could see.
  const picture = withoutMetadata(bytes, mediaType);
  if (picture === undefined)
    return `${name} is a damaged image: its parts do not fit together. Make it again, with bash.`;
  const latin = Buffer.from(picture).toString("latin1");
  if (maskWindow(latin, 0, latin.length) !== latin)
    return `${name} is not shown: its bytes hold a secret of this installation.`;
  return memory.saveBlob(picture, mediaType);
}
