/** `longhaul models`: usable models with windows and prices; those with a key come first. */
import type { Command } from "commander";
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { type CatalogueModel, isServed } from "../../activities/config/catalogue/catalogue.ts";
import { type ModelFacts, DEFAULT_MODEL } from "../../activities/config/models.ts";
import type { Price } from "../../activities/config/model-target.ts";
import {
  type Environment,
  findProvider,
  fullModelName,
  missingVariables,
} from "../../activities/config/providers.ts";
import { readSettings } from "../config/config.ts";
import { withoutPassword } from "../../temporal/probe.ts";
import { table } from "../console/format.ts";
import { tokens } from "../../activities/text/format.ts";
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
    const known = modelRows({ settings, facts, environment });
    const server = await serverNamed(filter ?? "", settings, environment);
    const listed = known.map(({ model }) => model);
    const served = (server?.rows ?? []).filter(({ model }) => !listed.includes(model));
    const rows = [...served, ...known].filter(({ model }) =>
      model.toLowerCase().includes((filter ?? "").toLowerCase()),
    );
    if (flags.json === true) output.json({ dated: catalogue.dated, models: rows }, 2);
    else if (rows.length === 0 && server !== undefined) output.note(`${server.found}\n`);
    else if (rows.length === 0) output.note(`No known model's name contains "${filter ?? ""}".\n`);
    else output.result(`${modelsText(rows, output.style, catalogue.dated)}\n`);
  };
}

/** Longest wait for a server's list, in ms. */
const SERVER_MS = 2_000;

/**
 * What a provider's server has, if the filter names a provider that needs no key or is configured, and lists its models.
 * @returns also what to say if it has none
 */
export async function serverNamed(
  filter: string,
  settings: Pick<AgentConfig, "models" | "providers">,
  environment: Environment,
): Promise<{ readonly rows: ModelRow[]; readonly found: string } | undefined> {
  const [name = ""] = filter.toLowerCase().split("/");
  const isOwn = Object.hasOwn(settings.providers, name);
  const providerModel =
    name === "" ? undefined : findProvider(`${name}/any`, settings.providers, environment);
  const { provider } = providerModel ?? {};
  if (provider?.name !== name || provider.baseUrl === undefined || provider.preset !== undefined)
    return undefined;
  if (!isOwn && provider.keyEnv !== undefined) return undefined;
  const { askModels } = await import("../setup/model-servers.ts");
  const key = provider.keyEnv && environment[provider.keyEnv];
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
  const models = await askModels(provider.baseUrl, { timeoutMs: SERVER_MS, headers });
  const able = (models ?? []).filter(({ tools }) => tools !== false);
  const has =
    models === undefined
      ? "No server answers there, or it lists no models"
      : `It has ${models.length === 0 ? "no models" : "no model that can call tools"}`;
  return {
    rows: able.map(({ id, contextWindow, most }) =>
      servedRow(`${name}/${id}`, contextWindow ?? most, settings),
    ),
    found: `${name} is asked at ${withoutPassword(provider.baseUrl)}. ${has}.`,
  };
}

function servedRow(
  model: string,
  contextWindow: number | undefined,
  settings: Pick<AgentConfig, "models">,
): ModelRow {
  const modelSettings = Object.entries(settings.models).find(([name]) => fullModelName(name) === model)?.[1];
  const sizes = sizeAndPrice(modelSettings, contextWindow === undefined ? undefined : { contextWindow });
  return { model, usable: true, isDefault: false, ...sizes, reasons: false, images: false, ends: null };
}

/** Models of the configuration and the catalogue that are served and can call tools: usable ones first, each part by name. */
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
    ([name, modelSettings]) => [fullModelName(name), modelSettings] as const,
  );
  const canCallTools = (model: string) => {
    const configuredTools = configured.find(([name]) => name === model)?.[1].tools;
    return configuredTools === undefined
      ? catalogue.models[model]?.tools !== false
      : configuredTools !== false;
  };
  return [...new Set([...configured.map(([name]) => name), ...served])]
    .filter(canCallTools)
    .map((model): ModelRow => {
      const catalogued = catalogue.models[model];
      const modelSettings = configured.find(([name]) => name === model)?.[1];
      const providerModel = findProvider(model, settings.providers, environment);
      return {
        model,
        usable:
          providerModel !== undefined && missingVariables(providerModel.provider, environment).length === 0,
        isDefault: model === chosen,
        ...sizeAndPrice(modelSettings, catalogued),
        reasons: catalogued?.thinks === true || modelSettings?.reasoning !== undefined,
        images: (modelSettings?.input ?? catalogued?.input ?? []).includes("image"),
        ends: catalogued?.ends ?? null,
      };
    })
    .toSorted((a, b) => Number(b.usable) - Number(a.usable) || a.model.localeCompare(b.model, "en"));
}

/** The configuration's figures win over the catalogue's. */
function sizeAndPrice(
  modelSettings: AgentConfig["models"][string] | undefined,
  catalogued: Partial<Pick<CatalogueModel, "contextWindow" | "maxOutput" | "price">> | undefined,
): Pick<ModelRow, "contextWindow" | "maxOutput" | "price"> {
  return {
    contextWindow: modelSettings?.contextWindow ?? catalogued?.contextWindow ?? null,
    maxOutput: modelSettings?.maxOutput ?? catalogued?.maxOutput ?? null,
    price: modelSettings?.price ?? catalogued?.price ?? null,
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
