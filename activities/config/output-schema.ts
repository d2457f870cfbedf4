/** Sessions whose last answer must be JSON matching a schema: the schema, and how an answer is checked against it. */
import { z } from "zod";
import { shorten } from "../text/cut.ts";
import { loadPart } from "../process/load-part.ts";
import { reasonOf } from "../contract/errors.ts";
import { runInNewContext } from "node:vm";

/** A JSON Schema: 2020-12 unless it names 2019-09, draft 7 or 6. */
export const outputSchemaSchema = z.record(z.string(), z.unknown());
export type OutputSchema = z.infer<typeof outputSchemaSchema>;

/** Maximum length of a schema as JSON: it is part of the system prompt. Chosen: some 8,000 tokens. */
export const MAX_SCHEMA_CHARS = 32_768;
/** Most nested levels: readers of the schema recurse into each. Chosen; providers accept five to ten. */
const MAX_SCHEMA_LEVELS = 100;
/** Longest description of what is wrong with an answer: it passes through the workflow. Chosen: some ten errors. */
const MAX_WHY_CHARS = 600;

export type CheckedAnswer =
  /** `text`: the JSON itself, without a fence. */
  | { readonly ok: true; readonly value: unknown; readonly text: string }
  /** `why` is written for the model. */
  | { readonly ok: false; readonly why: string };

/** What is wrong with a schema itself; undefined if answers can be checked against it. */
export async function schemaTrouble(schema: OutputSchema): Promise<string | undefined> {
  if (isDeeper(schema, MAX_SCHEMA_LEVELS)) return `it is nested more than ${MAX_SCHEMA_LEVELS} levels deep`;
  const chars = JSON.stringify(schema).length;
  if (chars > MAX_SCHEMA_CHARS) return `it has ${chars} characters; at most ${MAX_SCHEMA_CHARS} are taken`;
  try {
    await validatorOf(schema);
    return undefined;
  } catch (error) {
    return shorten(reasonOf(error), MAX_WHY_CHARS);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1));
}

/** Never throws: if the schema cannot be used for checking, no answer matches it. */
export async function checkAnswer(schema: OutputSchema, text: string): Promise<CheckedAnswer> {
  const json = readJson(text);
  if (!json.ok) return json;
  try {
    const validate = await validatorOf(schema);
    const { valid, errorMessage = "" } = inTime(() => validate(json.value));
    return valid ? json : { ok: false, why: shorten(errorMessage, MAX_WHY_CHARS) };
  } catch (error) {
    return { ok: false, why: shorten(`it cannot be checked: ${reasonOf(error)}`, MAX_WHY_CHARS) };
  }
}

// The MCP library includes a full validator for all dialects. A new one each time, because it would keep every
// schema.
async function validatorOf(schema: OutputSchema) {
  const { AjvJsonSchemaValidator } = await loadPart(import("@modelcontextprotocol/client/validators/ajv"));
  // `$async` is specific to this validator: its verdict would be a promise whose rejection nothing would catch.
  const { $async: _, ...standard } = schema;
  return inTime(() => new AjvJsonSchemaValidator().getValidator(standard));
}

/** Many models put JSON into a code fence, whatever the prompt says. */
const FENCED = /^```(?:json)?[^\S\n]*\n([\s\S]*?)\n?```$/;

function readJson(text: string): CheckedAnswer {
  const trimmed = text.trim();
  const bare = FENCED.exec(trimmed)?.[1] ?? trimmed;
  if (bare === "") return { ok: false, why: "it is empty" };
  try {
    return { ok: true, value: JSON.parse(bare) as unknown, text: bare };
  } catch (error) {
    return { ok: false, why: shorten(`it is not JSON: ${String(error)}`, MAX_WHY_CHARS) };
  }
}

/** The answer of a completed session, as its row stores it; undefined if the session has no schema. */
export function parseOutput(
  config: { readonly outputSchema?: unknown },
  { status, result }: { readonly status: string; readonly result: string | null },
): { readonly value: unknown; readonly text: string } | undefined {
  if (config.outputSchema === undefined || status !== "completed") return undefined;
  const json = readJson(result ?? "");
  return json.ok ? { value: json.value, text: json.text } : undefined;
}

/** The part of the system prompt about the output schema. */
export const outputPrompt = (schema: OutputSchema, hasTools = true): string =>
  `The last answer
- A program reads your last answer${hasTools ? ", the one without tool calls" : ""}. It must be one JSON value that matches the JSON Schema below, and nothing else: no text around it, no code fence.
${JSON.stringify(schema)}`;

/** The most time of the worker's single thread. Chosen: real answers and patterns take a few ms. */
const MAX_MS = 1_000;

/**
 * Runs synchronous work that may never end, such as a pattern from a schema or a model, which would block the whole worker.
 * @throws Error if it takes more than a second
 */
export const inTime = <Result>(compute: () => Result): Result =>
  runInNewContext("compute()", { compute }, { timeout: MAX_MS }) as Result;
