/**
 * Handles images and PDFs that make a provider refuse every request that contains them: the request is repeated
 * without them.
 */
import { shorten } from "../../text/cut.ts";
import { filesOf, withFiles, type FilePart } from "../../contract/message.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { isRefusal, ModelError, type ModelAnswer, type ModelRequest } from "../model.ts";
import { type Ask, RefusalMemory, type Refusals, isVague } from "./refusals.ts";

/** Longest quote of the provider's message, which replaces the file. */
const MAX_WHY_CHARS = 300;

export class FileRefusals implements Refusals {
  readonly #memory = new RefusalMemory();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const files = request.messages.flatMap(filesOf);
    if (files.length === 0) return ask(request);
    const refused = new Map<FilePart, string>();
    for (const file of files) {
      const why = this.#memory.why(endpoint, file.data);
      if (why !== undefined) refused.set(file, why);
    }
    const refusal = await firstRefusal(() => ask(without(request, refused)));
    if ("answer" in refusal) return { ...refusal.answer, ...leftOut(refused) };
    const left = files.filter((file) => !refused.has(file));
    for (const suspects of suspectsOf(refusal.text, left)) {
      const isSuspect = ({ data }: FilePart) => suspects.some((file) => file.data === data);
      const guess = new Map([
        ...refused,
        ...left.filter(isSuspect).map((file) => [file, refusal.why] as const),
      ]);
      const next = await firstRefusal(() => ask(without(request, guess)));
      if (!("answer" in next)) continue;
      for (const { data } of suspects) this.#memory.add(endpoint, data, refusal.why);
      return { ...next.answer, ...leftOut(guess, isSuspect) };
    }
    throw refusal.error;
  }
}

/** Each file once, even if it occurs several times. */
function leftOut(
  refused: ReadonlyMap<FilePart, string>,
  isNew: (file: FilePart) => boolean = () => false,
): Pick<ModelAnswer, "refusedParts"> {
  if (refused.size === 0) return {};
  const byData = new Map(
    [...refused].map(([file, why]) => {
      const { data, mediaType, filename } = file;
      return [data, { mediaType, filename, why, isNew: isNew(file) }];
    }),
  );
  return { refusedParts: [...byData.values()] };
}

type Asked =
  | { readonly answer: ModelAnswer }
  | { readonly error: ModelError; readonly why: string; readonly text: string };

const ABOUT_FILES = /image|inline_data|picture|\bpdfs?\b|\bdocuments?\b|\bmedia\b|\bfiles?\b|\bvision\b/i;

/** @throws errors that are not about a file */
async function firstRefusal(ask: () => Promise<ModelAnswer>): Promise<Asked> {
  try {
    return { answer: await ask() };
  } catch (error) {
    // A proxy's size limit: files make up most of a request's bytes.
    const isTooLarge = error instanceof ModelError && error.status === 413;
    if (!isTooLarge && !isRefusal(error)) throw error;
    const { text, code, param = "" } = readErrorFacts(error.cause);
    if (!isTooLarge && !ABOUT_FILES.test(`${text} ${code} ${param}`) && !isVague(text)) throw error;
    return { error, why: shorten(error.message, MAX_WHY_CHARS), text };
  }
}

function without(request: ModelRequest, refused: ReadonlyMap<FilePart, string>): ModelRequest {
  if (refused.size === 0) return request;
  const replacements = new Map(
    [...refused].map(([file, why]) => [
      file,
      `[${file.filename ?? "A file"} (${file.mediaType}) is not shown. ${why}]`,
    ]),
  );
  return { ...request, messages: request.messages.map((message) => withFiles(message, replacements)) };
}

/** Most files left out one by one, the newest. Chosen: the previous request was accepted, so one of the new ones is refused. */
const ONE_BY_ONE = 4;

/**
 * Which files of a request a provider's refusal may be about.
 * @param text the provider's own words
 * @param files oldest first
 * @returns sets to try without, the likeliest first and all of them last; none is empty
 */
function suspectsOf(text: string, files: readonly FilePart[]): FilePart[][] {
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
  const digits = pattern.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
