/** Which files of a request a provider's refusal may be about. Pure. */
import type { FilePart } from "../../contract/message.ts";

/** Of files that are left out one by one: the newest, since the request before was taken. Source: ours. */
const ONE_BY_ONE = 4;

/**
 * @param text the provider's own words
 * @param files oldest first
 * @returns sets to try without, the likeliest first and all of them last; none is empty
 */
export function suspectsOf(text: string, files: readonly FilePart[]): FilePart[][] {
  const newest = [...new Map(files.toReversed().map((file) => [file.data, file])).values()];
  const single = newest.length > 1 ? newest.slice(0, ONE_BY_ONE).map((file) => [file]) : [];
  return [beyond(text, files), ...single, [...files]].filter((set) => set.length > 0);
}

/**
 * Those beyond a limit that the refusal names. Source: Anthropic, "At least one of the image dimensions exceed max allowed size for
 * many-image requests: 2000 pixels", "image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"; vLLM, "At most 1 image(s) may be
 * provided in one request"; Groq, "This model supports up to 5 images".
 */
function beyond(text: string, files: readonly FilePart[]): FilePart[] {
  const edge = numberIn(/dimension.*?(\d+) pixels/i, text);
  if (edge !== undefined) return files.filter(({ width = 0, height = 0 }) => Math.max(width, height) > edge);
  const bytes = numberIn(/bytes > (\d+) bytes/i, text);
  if (bytes !== undefined) return files.filter(({ data }) => data.length > bytes);
  const count = numberIn(/(?:at most|up to|maximum of) (\d+) image/i, text);
  return count === undefined ? [] : files.slice(0, Math.max(0, files.length - count));
}

function numberIn(pattern: RegExp, text: string): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}
