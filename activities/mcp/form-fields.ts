/** Fields of a server's form: their choices, the text that a person reads, and the values of answers. Pure. */
import { z } from "zod";
import { issueText } from "../config/issue-text.ts";
import { shorten } from "../text/cut.ts";
import { oneLine } from "../tools/paths.ts";

/** A field's JSON schema, of the kinds that the protocol allows. */
export interface FieldSchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly enumNames?: readonly string[];
  readonly oneOf?: readonly Choice[];
  readonly items?: { readonly enum?: readonly string[]; readonly anyOf?: readonly Choice[] };
  readonly [more: string]: unknown;
}

interface Choice {
  readonly const: string;
  readonly title?: string;
}

/** Up to this many choices are shown as options; beyond that, people type their choice. */
const MAX_OPTIONS = 50;
const MAX_LABEL_CHARS = 200;
const MAX_WORDS_CHARS = 1_000;

const BOOLEAN = [
  { value: true, label: "yes" },
  { value: false, label: "no" },
];

function choicesOf({ type, enum: values, enumNames, oneOf, items }: FieldSchema) {
  if (type === "boolean") return BOOLEAN;
  const choices =
    oneOf ??
    items?.anyOf ??
    (values ?? items?.enum)?.map((value, place) => ({ const: value, title: enumNames?.[place] }));
  return choices?.map(({ const: value, title }) => ({
    value,
    label: oneLine(title ?? value, MAX_LABEL_CHARS),
  }));
}

/** The choices of a field that takes one of them; undefined if the answer is free text. */
export function optionsOf(schema: FieldSchema): string[] | undefined {
  const choices = choicesOf(schema);
  return choices === undefined || schema.type === "array" || choices.length > MAX_OPTIONS
    ? undefined
    : choices.map(({ label }) => label);
}

/** What a person should fill in, and in which format. */
export function fieldText(name: string, schema: FieldSchema, place: string): string {
  const { title, description, type } = schema;
  const words = shorten([title ?? name, description].filter(Boolean).join(": "), MAX_WORDS_CHARS);
  const choices = optionsOf(schema) === undefined ? choicesOf(schema) : undefined;
  const of = choices?.map(({ label }) => label).join(", ");
  const how = [
    ...(type === "array" ? ["several, with commas between them"] : []),
    ...(type === "number" || type === "integer" ? ["a number"] : []),
    ...(of === undefined ? [] : [`of: ${shorten(of, MAX_WORDS_CHARS)}`]),
    ...(typeof schema["format"] === "string" ? [formatText(schema["format"])] : []),
    ...(schema.default === undefined ? [] : [`by default ${oneLine(JSON.stringify(schema.default), 80)}`]),
  ];
  return `${place}${words}${how.length === 0 ? "" : ` (${how.join("; ")})`}`;
}

const formatText = (format: string) =>
  ({
    date: "as 2026-11-23",
    "date-time": "as 2026-11-23T09:00:00Z",
    uri: "an address",
    email: "an e-mail address",
  })[format] ?? oneLine(format, 40);

/** The field's value from a person's text, or what is wrong with the text, as a clause. */
export function answerValue(
  schema: FieldSchema,
  words: string,
): { readonly value: unknown } | { readonly problem: string } {
  const value = valueOf(schema, words.trim());
  if (value === undefined) return { problem: "it is not one of the choices" };
  try {
    const read = z.fromJSONSchema(withoutPatterns(schema)).safeParse(value);
    if (read.success) return { value };
    return { problem: shorten(read.error.issues.map(issueText).join("; "), 300) };
  } catch {
    // If the library does not know the schema, the server checks the value.
    return { value };
  }
}

/** A server's regular expression could run forever and block the worker, so it is left to the server. */
function withoutPatterns(schema: FieldSchema): Parameters<typeof z.fromJSONSchema>[0] {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === "pattern" ? undefined : value)),
  ) as Parameters<typeof z.fromJSONSchema>[0];
}

function valueOf(schema: FieldSchema, words: string): unknown {
  const choices = choicesOf(schema);
  const chosen = (answer: string) =>
    choices?.find(({ label, value }) =>
      [label, String(value)].some((name) => name.toLowerCase() === answer.toLowerCase()),
    )?.value;
  if (schema.type === "array") {
    const values = words
      .split(/[,\n]/)
      .map((answer) => answer.trim())
      .filter((answer) => answer !== "")
      .map((answer) => (choices === undefined ? answer : chosen(answer)));
    return values.includes(undefined) ? undefined : values;
  }
  if (choices !== undefined) return chosen(words);
  if (schema.type !== "number" && schema.type !== "integer") return words;
  // The schema refuses text that is not a number.
  return words !== "" && Number.isFinite(Number(words)) ? Number(words) : words;
}
