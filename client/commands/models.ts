/** `longhaul models`: usable models with windows and prices; those with a key come first. */
import type { Command } from "commander";
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { type CatalogueModel, isServed } from "../../activities/config/catalogue/catalogue.ts";
import type { ModelFacts } from "../../activities/config/models.ts";
import type { Price } from "../../activities/config/model-target.ts";
import {
  type Environment,
  findProvider,
  fullModelName,
  missingVariables,
} from "../../activities/config/providers.ts";
import { DEFAULT_MODEL } from "../../activities/config/default-model.ts";
import { readSettings } from "../config/config.ts";
import { tokens, table } from "../console/format.ts";
import type { Output, Style } from "../console/output.ts";

interface ModelsFlags {
  readonly config?: string;
  readonly json?: boolean;
}

export interface ModelRow {
  /** `provider/model`. */
  readonly model: string;
  /** Whether the provider's key is set, or none is needed. */
  readonly usable: boolean;
  readonly isDefault: boolean;
  readonly contextWindow: number | null;
  readonly maxOutput: number | null;
  readonly price: Price | null;
  readonly reasons: boolean;
  readonly images: boolean;
  /** Day of its shutdown, if one is announced. */
  readonly ends: string | null;
}

export function modelsCommand(command: Command, output: Output) {
  command
    .argument("[filter]", "only names that contain this")
    .option("--config <file>", "configuration file (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .option("--json", "one JSON document");
  return async (filter: string | undefined, flags: ModelsFlags): Promise<void> => {
    const { settings, facts, environment } = readSettings(flags);
    const { catalogue } = facts;
    const rows = modelRows({ settings, facts, environment }).filter(({ model }) =>
      model.toLowerCase().includes((filter ?? "").toLowerCase()),
    );
    if (flags.json === true) output.json({ dated: catalogue.dated, models: rows }, 2);
    else if (rows.length === 0) output.note(`No known model's name contains "${filter ?? ""}".\n`);
    else output.result(`${modelsText(rows, output.style, catalogue.dated)}\n`);
  };
}

/** Models of the configuration and the catalogue that are served and can call tools: usable ones first, each part by name. Pure. */
export function modelRows(from: {
  readonly settings: Pick<AgentConfig, "model" | "models" | "providers">;
  readonly facts: ModelFacts;
  readonly environment: Environment;
}): ModelRow[] {
  const { settings, facts, environment } = from;
  const { catalogue, now } = facts;
  const chosen = fullModelName(settings.model ?? DEFAULT_MODEL);
  const served = Object.keys(catalogue.models).filter((name) => isServed(catalogue.models[name] ?? {}, now));
  const configured = Object.entries(settings.models).map(
    ([name, own]) => [fullModelName(name), own] as const,
  );
  const canCallTools = (model: string) => {
    const own = configured.find(([name]) => name === model)?.[1].tools;
    return own === undefined ? catalogue.models[model]?.tools !== false : own !== false;
  };
  return [...new Set([...configured.map(([name]) => name), ...served])]
    .filter(canCallTools)
    .map((model): ModelRow => {
      const known = catalogue.models[model];
      const own = configured.find(([name]) => name === model)?.[1];
      const found = findProvider(model, settings.providers, environment);
      return {
        model,
        usable: found !== undefined && missingVariables(found.provider, environment).length === 0,
        isDefault: model === chosen,
        ...sizeAndPrice(own, known),
        reasons: known?.thinks === true || own?.reasoning !== undefined,
        images: (own?.input ?? known?.input ?? []).includes("image"),
        ends: known?.ends ?? null,
      };
    })
    .toSorted((a, b) => Number(b.usable) - Number(a.usable) || a.model.localeCompare(b.model, "en"));
}

/** The configuration's figures win over the catalogue's. */
function sizeAndPrice(
  own: AgentConfig["models"][string] | undefined,
  known: CatalogueModel | undefined,
): Pick<ModelRow, "contextWindow" | "maxOutput" | "price"> {
  return {
    contextWindow: own?.contextWindow ?? known?.window ?? null,
    maxOutput: own?.maxOutput ?? known?.maxOutput ?? null,
    price: own?.price ?? known?.price ?? null,
  };
}

const HEAD = ["", "MODEL", "WINDOW", "OUTPUT", "$ IN", "CACHED", "OUT", "REASONS", "IMAGES", "ENDS"];

export function modelsText(rows: readonly ModelRow[], style: Style, dated: string): string {
  const cells = rows.map((row) => [
    row.usable ? "✓" : "",
    row.isDefault ? `${row.model} (default)` : row.model,
    row.contextWindow === null ? "–" : tokens(row.contextWindow),
    row.maxOutput === null ? "–" : tokens(row.maxOutput),
    usd(row.price?.input),
    usd(row.price?.cached),
    usd(row.price?.output),
    row.reasons ? "yes" : "",
    row.images ? "yes" : "",
    row.ends ?? "",
  ]);
  const [head = "", ...lines] = table([HEAD, ...cells], Infinity).map((line) => line.trimEnd());
  return [
    style("dim", head),
    ...lines.map((line, index) => (rows[index]?.usable ? line : style("dim", line))),
    style(
      "dim",
      `${rows.some(({ usable }) => usable) ? "✓ its key is set. " : ""}Prices in USD per million tokens, as of ${dated}; some cost more in long requests.`,
    ),
  ].join("\n");
}

/** As price lists write it: no rounding. */
const usd = (price: number | undefined) => (price === undefined ? "–" : String(price));
