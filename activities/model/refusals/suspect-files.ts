/** Which files of a request a provider's refusal may be about. Pure. */
import type { FilePart } from "../../contract/message.ts";
import { isVague } from "./vague.ts";

/** Most files left out one by one: the newest, since the previous request was accepted. Source: ours. */
const ONE_BY_ONE = 4;

/**
 * @param text the provider's own words
 * @param files oldest first
 * @returns sets to try without, the likeliest first and all of them last; none is empty
 */
export function suspectsOf(text: string, files: readonly FilePart[]): FilePart[][] {
  const newest = [...new Map(files.toReversed().map((file) => [file.data, file])).values()];
  const most = isVague(text) ? 1 : ONE_BY_ONE;
  const single = newest.length > 1 ? newest.slice(0, most).map((file) => [file]) : [];
  return [beyond(text, files), ...single, [...files]].filter((set) => set.length > 0);
}

/**
 * Those beyond a limit that the refusal names. Source: Anthropic, "At least one of the image dimensions exceed max allowed size for
 * many-image requests: 2000 pixels", "image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"; of their number `COUNT`.
 */
function beyond(text: string, files: readonly FilePart[]): FilePart[] {
  const edge = numberIn(/dimension.*?(\d+) pixels/i, text);
  if (edge !== undefined) return files.filter(({ width = 0, height = 0 }) => Math.max(width, height) > edge);
  const bytes = numberIn(/bytes > (\d+) bytes/i, text);
  if (bytes !== undefined) return files.filter(({ data }) => data.length > bytes);
  const count = numberIn(COUNT, text);
  if (count === undefined || !/image|media/i.test(text)) return [];
  const counted = /document|media/i.test(text)
    ? files
    : files.filter(({ mediaType }) => mediaType.startsWith("image/"));
  return counted.slice(0, Math.max(0, counted.length - count));
}

/**
 * Source: vLLM, "At most 1 image(s) may be provided in one request", "You set image=2"; Groq, "This model supports up to 5 images";
 * Mistral, "Max is 8"; Meta, "exceeding the maximum of 50 allowed"; Anthropic, "too many images and documents: 104 + 1 > 100".
 */
const COUNT = /(?:at most |up to |maximum of |max is |image=|> )(\d+)\b(?! ?(?:MB|bytes|pixels|PDF|pages))/i;

function numberIn(pattern: RegExp, text: string): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}
