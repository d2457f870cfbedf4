/** Clouds' addresses for models, as data: a preset gives a provider its address and API. */
import { z } from "zod";

/** OpenAI's Responses and chat completions, Anthropic's messages, Google's generateContent. */
export const apis = ["responses", "chat", "messages", "gemini"] as const;
export type Api = (typeof apis)[number];

/** A name as it may stand in a host's name or a path: nothing that ends it. */
const resourceName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "a name of letters, digits and -, such as us-east-1");

const presetNames = ["bedrock-claude", "bedrock-open", "vertex-gemini", "vertex-claude", "azure"] as const;
export type PresetName = (typeof presetNames)[number];

/** What a preset's address is made of. */
export const presetFields = {
  preset: z.enum(presetNames).optional(),
  /** Of Bedrock and Vertex; Vertex has `global`, `us` and `eu` too. */
  region: resourceName.optional(),
  /** Of Vertex. */
  project: resourceName.optional(),
  /** Of Azure: the first label of its host. */
  resource: resourceName.optional(),
};
export type Placed = {
  readonly [Field in keyof typeof presetFields]?: z.infer<(typeof presetFields)[Field]> | undefined;
};

interface Preset {
  readonly api: Api;
  /** The services at that address speak no other API. */
  readonly isOnlyApi?: true;
  readonly needs: readonly ("region" | "project" | "resource")[];
  readonly address: (at: Readonly<Record<string, string>>) => string;
  /** The catalogue's name of a model, if it is listed under its maker. */
  readonly maker?: (model: string) => string;
}

/** Bedrock's ids: `eu.anthropic.claude-opus-4-6-v1:0` is Anthropic's claude-opus-4-6. */
const bedrockName = (model: string) =>
  model
    .replace(/^(us-gov|us|eu|apac|global|jp|au|ca|sa|me|af)\./, "")
    .replace(/^anthropic\./, "")
    .replace(/(-v\d+)?(:\d+)*$/, "");

const vertexHost = (region: string) => {
  if (region === "global") return "aiplatform.googleapis.com";
  return region === "us" || region === "eu"
    ? `aiplatform.${region}.rep.googleapis.com`
    : `${region}-aiplatform.googleapis.com`;
};
const vertex =
  (publisher: string) =>
  ({ region = "", project = "" }: Readonly<Record<string, string>>) =>
    `https://${vertexHost(region)}/v1/projects/${project}/locations/${region}/publishers/${publisher}`;

/** Sources: the services' own references of these addresses, linked in docs/identity.md. */
const presets: Readonly<Record<PresetName, Preset>> = {
  "bedrock-claude": {
    api: "messages",
    isOnlyApi: true,
    needs: ["region"],
    address: ({ region }) => `https://bedrock-runtime.${region}.amazonaws.com/anthropic/v1`,
    maker: (model) => `anthropic/${bedrockName(model)}`,
  },
  "bedrock-open": {
    api: "chat",
    needs: ["region"],
    address: ({ region }) => `https://bedrock-mantle.${region}.api.aws/v1`,
  },
  "vertex-gemini": {
    api: "gemini",
    isOnlyApi: true,
    needs: ["project", "region"],
    address: vertex("google"),
    maker: (model) => `google/${model}`,
  },
  "vertex-claude": {
    api: "messages",
    isOnlyApi: true,
    needs: ["project", "region"],
    address: vertex("anthropic"),
    maker: (model) => `anthropic/${model.replace(/@.*$/, "")}`,
  },
  azure: {
    api: "responses",
    needs: ["resource"],
    address: ({ resource }) => `https://${resource}.openai.azure.com/openai/v1`,
    maker: (model) => `openai/${model}`,
  },
};

export const isPreset = (name: string): name is PresetName =>
  (presetNames as readonly string[]).includes(name);

/** The API of a preset's address, and whether it has no other. */
export function apiOfPreset(preset: PresetName): Pick<Preset, "api" | "isOnlyApi"> {
  return presets[preset];
}

/** What the address of a provider's preset lacks; empty if it is known or needs no preset. */
export function lackingFields(placed: Placed): string[] {
  if (placed.preset === undefined) return [];
  return presets[placed.preset].needs.filter((field) => placed[field] === undefined);
}

/** @returns undefined if there is no preset, or it lacks a field */
export function presetAddress(placed: Placed): string | undefined {
  if (placed.preset === undefined || lackingFields(placed).length > 0) return undefined;
  return presets[placed.preset].address(placed as Record<string, string>);
}

/** The name under which the catalogue may know a cloud's model: its maker's. @param modelName on the wire */
export function makersName(preset: PresetName | undefined, modelName: string): string | undefined {
  return preset && presets[preset].maker?.(modelName);
}
