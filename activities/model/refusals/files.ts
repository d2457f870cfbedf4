/**
 * Handles images and PDFs that make a provider refuse every request that contains them: the request is repeated
 * without them.
 */
import { shorten } from "../../contract/cut-text.ts";
import type { FilePart } from "../../contract/message.ts";
import { filesOf, withFiles } from "../../contract/message-files.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { isRefusal, ModelError, type ModelAnswer, type ModelRequest } from "../model.ts";
import { type Ask, RefusalMemory, type Refusals } from "./memory.ts";
import { suspectsOf } from "./suspect-files.ts";
import { isVague } from "./vague.ts";

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
  const words = new Map(
    [...refused].map(([file, why]) => [
      file,
      `[${file.filename ?? "A file"} (${file.mediaType}) is not shown. ${why}]`,
    ]),
  );
  return { ...request, messages: request.messages.map((message) => withFiles(message, words)) };
}
