/** Merges a newer file over the catalogue of this version. Reads that file. */
import { readFileSync } from "node:fs";
import { issueTexts } from "../issue-text.ts";
import type { ModelFacts } from "../models.ts";
import { type Catalogue, catalogueSchema, publishedCatalogue } from "./catalogue.ts";

/** A file of another form has a mistake in each of its hundreds of models. */
const SHOWN_MISTAKES = 5;

/** The known model facts, as of now. @throws as `loadCatalogue` */
export function currentModelFacts(file: string | undefined): ModelFacts {
  return { catalogue: loadCatalogue(file), now: Date.now() };
}

/**
 * @param file written by scripts/catalogue.ts; its models override those of this version. Undefined: none
 * @throws Error with a readable message if the file cannot be read or is not a catalogue
 */
export function loadCatalogue(file: string | undefined): Catalogue {
  if (file === undefined || file === "") return publishedCatalogue;
  const newer = catalogueSchema.safeParse(contentOf(file));
  if (!newer.success)
    throw new Error(
      `LONGHAUL_CATALOGUE: ${file} is not a catalogue of models: ${issueTexts(newer.error, catalogueSchema).slice(0, SHOWN_MISTAKES).join("; ")}`,
    );
  return { ...newer.data, models: { ...publishedCatalogue.models, ...newer.data.models } };
}

function contentOf(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`LONGHAUL_CATALOGUE: ${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
