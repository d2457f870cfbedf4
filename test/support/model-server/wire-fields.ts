/** The names that the wires accept, from wire-fields.yaml. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";

type Names = readonly string[];
type NamesBy = Readonly<Record<string, Names>>;

interface OpenAiFields {
  readonly parameters: Names;
  readonly objects: NamesBy;
  readonly items: NamesBy;
  readonly tool: Names;
  readonly values: NamesBy;
  readonly imageDetails: Names;
}

interface WireFields {
  readonly responses: OpenAiFields & { readonly includes: Names };
  readonly chat: OpenAiFields;
  readonly parts: NamesBy;
  readonly messages: { readonly parameters: Names; readonly blocks: NamesBy };
  readonly gemini: Readonly<
    Record<
      "request" | "generationConfig" | "thinkingConfig" | "content" | "part" | "declaration" | "schema",
      Names
    >
  >;
}

export const WIRE_FIELDS = namesIn(
  parse(readFileSync(new URL("wire-fields.yaml", import.meta.url), "utf8")),
) as WireFields;

function namesIn(value: unknown): unknown {
  if (typeof value === "string") return value.split(/\s+/);
  return Object.fromEntries(Object.entries(value as object).map(([name, inner]) => [name, namesIn(inner)]));
}
