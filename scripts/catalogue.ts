/**
 * Writes the catalogue of models from public data:
 *   node scripts/node.mjs scripts/catalogue.ts API_JSON DATE [FILE]
 * API_JSON is the api.json of models.dev (published there, or made from a checkout of it), DATE its day (YYYY-MM-DD);
 * FILE is written instead of the catalogue of this version, for LONGHAUL_CATALOGUE.
 * catalogue-supplement.yaml adds what the data lacks, and takes precedence.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";
import { type CatalogueModel, catalogueSchema } from "../activities/config/catalogue/catalogue.ts";
import { efforts } from "../activities/config/model-target.ts";

const catalogueFile = fileURLToPath(new URL("../activities/config/catalogue/models.json", import.meta.url));
const supplementFile = new URL("catalogue-supplement.yaml", import.meta.url);

/** Built-in providers that the data lists; Azure uses OpenAI's names. */
const PROVIDERS = ["openai", "anthropic", "google", "deepseek", "groq", "mistral", "openrouter"];
/** Makers whose models people use for coding, among the router's some 340 models. */
const ROUTED =
  /^(anthropic|openai|google|deepseek|qwen|mistralai|moonshotai|z-ai|x-ai|minimax|meta-llama)\/[^:]+$/;
const ROUTED_SINCE = "2025-06";

const rate = z.object({
  input: z.number(),
  output: z.number(),
  cache_read: z.number().optional(),
  cache_write: z.number().optional(),
});
const publicModelSchema = z.object({
  tool_call: z.boolean(),
  reasoning: z.boolean().optional(),
  reasoning_options: z
    .array(z.object({ type: z.string(), values: z.array(z.string()).optional() }))
    .optional(),
  release_date: z.string().optional(),
  status: z.string().optional(),
  cost: rate
    .extend({ tiers: z.array(rate.extend({ tier: z.object({ size: z.number() }) })).optional() })
    .optional(),
  limit: z.object({ context: z.number(), input: z.number().optional(), output: z.number() }),
  modalities: z.object({ input: z.array(z.string()), output: z.array(z.string()) }),
});
type PublicModel = z.infer<typeof publicModelSchema>;

const facts = z.strictObject({
  contextWindow: z.number().optional(),
  maxInput: z.number().optional(),
  maxOutput: z.number().optional(),
  input: z.array(z.enum(["text", "image", "pdf"])).optional(),
  thinks: z.boolean().optional(),
  tools: z.literal(false).optional(),
});
const supplementSchema = z.strictObject({
  dated: z.string(),
  defaults: z.record(z.string(), facts),
  models: z.record(
    z.string(),
    facts.extend({
      price: z.tuple([z.number(), z.number(), z.number()]).optional(),
      write: z.number().optional(),
      long: z.boolean().optional(),
      tiers: z.record(z.string(), z.number()).optional(),
      ends: z.string().optional(),
    }),
  ),
});
type Supplement = z.infer<typeof supplementSchema>["models"][string];

const LONG_TOKENS = 272_000;
type Known = { readonly [name in keyof CatalogueModel]?: CatalogueModel[name] | undefined };

/** Corrects the rounding error of a product of two floats. */
const exact = (usd: number) => Number(usd.toFixed(6));
/** Used if a list gives the whole window as the longest answer. Chosen by judgement. */
const MAX_ANSWER_SHARE = 0.25;

function rateOf(cost: z.infer<typeof rate>) {
  return {
    input: cost.input,
    cached: cost.cache_read ?? cost.input,
    cacheWrite: cost.cache_write,
    output: cost.output,
  };
}

function fromPublic(model: PublicModel, provider: string): CatalogueModel {
  const { limit, cost } = model;
  const listedInput = model.modalities.input;
  // OpenAI's models that see images read PDFs too. Source: its guide to file inputs.
  const kinds =
    provider === "openai" && listedInput.includes("image") ? [...listedInput, "pdf"] : listedInput;
  const listed = model.reasoning_options?.find(({ type }) => type === "effort")?.values ?? [];
  const known = efforts.filter((effort) => listed.includes(effort));
  // If there are several price steps, the highest one counts from the first on, so that the cost is never underestimated.
  const steps = (cost?.tiers ?? []).toSorted((a, b) => a.tier.size - b.tier.size);
  const [first, last] = [steps[0], steps.at(-1)];
  const above = first && last ? { above: { tokens: first.tier.size, ...rateOf(last) } } : {};
  return {
    contextWindow: limit.context,
    maxInput: limit.input === undefined || limit.input >= limit.context ? undefined : limit.input,
    maxOutput: limit.output < limit.context ? limit.output : Math.floor(limit.context * MAX_ANSWER_SHARE),
    input: (["text", "image", "pdf"] as const).filter((kind) => kinds.includes(kind)),
    price: cost === undefined ? undefined : { ...rateOf(cost), ...above },
    thinks: model.reasoning ? true : undefined,
    efforts: known.length > 0 ? known : undefined,
    tools: model.tool_call ? undefined : false,
  };
}

/** @param price input, cached, output @param long whether requests above `LONG_TOKENS` cost more */
function priceOf(price: NonNullable<Supplement["price"]>, write: number | undefined, long = false) {
  const [input, cached, output] = price;
  const above = {
    tokens: LONG_TOKENS,
    input: exact(input * 2),
    cached: exact(cached * 2),
    cacheWrite: write === undefined ? undefined : exact(write * 2),
    output: exact(output * 1.5),
  };
  return {
    input,
    cached,
    cacheWrite: write,
    output,
    above: long ? above : undefined,
  };
}

function withSupplement(
  id: string,
  known: CatalogueModel | undefined,
  supplement: Supplement,
  defaults: z.infer<typeof facts> | undefined,
): CatalogueModel {
  const { price, write: ownWrite, long, tiers, thinks: ownThinks, ...rest } = supplement;
  const { thinks: thinksByDefault, ...limits } = defaults ?? {};
  const thinks = ownThinks ?? known?.thinks ?? (known === undefined && thinksByDefault);
  const { thinks: _, price: knownPrice, ...base }: Known = known ?? limits;
  const ownPrice =
    price === undefined ? knownPrice : priceOf(price, ownWrite ?? knownPrice?.cacheWrite, long);
  const whole = {
    ...base,
    ...rest,
    thinks: thinks || undefined,
    price: ownPrice === undefined ? undefined : { ...ownPrice, ...(tiers === undefined ? {} : { tiers }) },
  };
  if (whole.contextWindow === undefined || whole.maxOutput === undefined || whole.input === undefined)
    throw new Error(`${id} of the supplement is in no list: it needs contextWindow, maxOutput and input.`);
  return whole as CatalogueModel;
}

function isUseful(provider: string, id: string, model: PublicModel): boolean {
  if (!model.modalities.output.includes("text") || model.status === "deprecated") return false;
  return provider !== "openrouter" || (ROUTED.test(id) && (model.release_date ?? "") >= ROUTED_SINCE);
}

const [file, date, target = catalogueFile] = process.argv.slice(2);
if (file === undefined || date === undefined)
  throw new Error("Usage: scripts/catalogue.ts API_JSON DATE [FILE]");
const api = z
  .record(z.string(), z.object({ models: z.record(z.string(), z.unknown()) }))
  .parse(JSON.parse(readFileSync(file, "utf8")));
const supplement = supplementSchema.parse(parse(readFileSync(supplementFile, "utf8"), { schema: "core" }));

const models: Record<string, CatalogueModel> = {};
for (const provider of PROVIDERS) {
  for (const [id, value] of Object.entries(api[provider]?.models ?? {})) {
    const model = publicModelSchema.safeParse(value);
    const isNamed = Object.hasOwn(supplement.models, `${provider}/${id}`);
    if (model.success && (isNamed || isUseful(provider, id, model.data)))
      models[`${provider}/${id}`] = fromPublic(model.data, provider);
  }
}
for (const [id, facts] of Object.entries(supplement.models)) {
  const provider = id.slice(0, id.indexOf("/"));
  models[id] = withSupplement(id, models[id], facts, supplement.defaults[provider]);
}
const catalogue = catalogueSchema.parse({
  about:
    "Made by scripts/catalogue.ts: do not edit. From models.dev (MIT License, Copyright (c) 2025 models.dev) and, where that lacks something, scripts/catalogue-supplement.yaml. Tokens; USD per million tokens.",
  dated: supplement.dated,
  publicData: date,
  models: Object.fromEntries(Object.entries(models).toSorted(([a], [b]) => a.localeCompare(b, "en"))),
});
// One line per model, so that a diff shows the changes of each.
const lines = Object.entries(catalogue.models).map(
  ([id, model]) => `    ${JSON.stringify(id)}: ${JSON.stringify(model)}`,
);
const { models: _, ...head } = catalogue;
const start = JSON.stringify(head, null, 2).replace(/\n\}$/, "");
writeFileSync(target, `${start},\n  "models": {\n${lines.join(",\n")}\n  }\n}\n`);
process.stdout.write(`${lines.length} models in ${target}\n`);
