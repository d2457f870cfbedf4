/** Public facts about models: a dated file made by scripts/catalogue.ts, a newer file over it, and the lookup of a model in it. */
import { z } from "zod";
import { efforts, priceSchema } from "../model-target.ts";
import published from "./models.json" with { type: "json" };
import { readFileSync } from "node:fs";
import { issueTexts } from "../issue-text.ts";

const tokens = z.number().int().positive();

const catalogueModelSchema = z.strictObject({
  /** Tokens of request and answer combined. */
  contextWindow: tokens,
  /** Largest request, if that is less than the window. */
  maxInput: tokens.optional(),
  maxOutput: tokens,
  input: z.array(z.enum(["text", "image", "pdf"])),
  price: priceSchema.optional(),
  /** The model reasons before it answers. */
  thinks: z.literal(true).optional(),
  efforts: z.array(z.enum(efforts)).optional(),
  /** The model cannot call tools. */
  tools: z.literal(false).optional(),
  /** Day of the model's shutdown; `gone` if it is past and the day is unknown. */
  ends: z.union([z.iso.date(), z.literal("gone")]).optional(),
});
export type CatalogueModel = z.infer<typeof catalogueModelSchema>;

export const catalogueSchema = z.strictObject({
  about: z.string(),
  /** Day of the newest fact. */
  dated: z.iso.date(),
  /** Day of the public data used. */
  publicData: z.iso.date(),
  /** By `provider/model`. */
  models: z.record(z.string(), catalogueModelSchema),
});
export type Catalogue = z.infer<typeof catalogueSchema>;

/** The catalogue of this version. A test validates it against the schema, so that startup need not. */
export const publishedCatalogue = published as unknown as Catalogue;

/** Snapshots are named after their day: gpt-5-2025-08-07, claude-haiku-4-5-20251001. */
const SNAPSHOT = /-20\d\d-?\d\d-?\d\d$/;

/**
 * Looks up a model. Azure's models are OpenAI's; an unlisted dated snapshot is looked up by its name without the
 * date.
 * @param model `provider/model`
 */
export function findInCatalogue({ models }: Catalogue, model: string): CatalogueModel | undefined {
  const name = model.replace(/^azure\//, "openai/");
  for (const key of [name, name.replace(SNAPSHOT, "")]) if (Object.hasOwn(models, key)) return models[key];
  return undefined;
}

/** A model's shutdown is announced this many days ahead. */
const WARNING_DAYS = 60;
const DAY_MS = 86_400_000;

/** Whether a model is still served at a time. */
export function isServed({ ends }: Pick<CatalogueModel, "ends">, now: number): boolean {
  return ends === undefined || (ends !== "gone" && now < Date.parse(ends));
}

/** The notice for a model that shuts down within 60 days. */
export function shutdownNote(
  model: string,
  { ends }: Pick<CatalogueModel, "ends">,
  now: number,
): string | undefined {
  if (ends === undefined || ends === "gone") return undefined;
  const days = Math.ceil((Date.parse(ends) - now) / DAY_MS);
  if (days > WARNING_DAYS) return undefined;
  return `${model} is shut down on ${ends} (in ${days} ${days === 1 ? "day" : "days"}): choose another model for longer work.`;
}

/** A file of another form has a mistake in each of its hundreds of models. */
const SHOWN_MISTAKES = 5;

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
