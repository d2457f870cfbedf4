/** What a schema found wrong with a value, as people read it: the schema library has words of its own. */
import type { z } from "zod";
import { nearest } from "../text/lists.ts";
import { inAlternatives } from "../text/format.ts";

type Issue = z.core.$ZodIssue;

const KINDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a group of settings",
  record: "a group of settings",
  null: "nothing",
};

const FORMATS: Readonly<Record<string, string>> = {
  url: "expected an address such as https://host.example/path",
  date: "expected a day such as 2026-11-23",
  base64: "expected base64, such as aGVsbG8=",
};

/** Each thing that is wrong, with the name of its field, such as `limits.maxSteps: expected more than 0`. */
export function issueTexts(error: z.ZodError, schema: z.ZodType): string[] {
  return [...new Set(error.issues.flatMap((issue) => namedTexts(issue, schema)))];
}

function namedTexts(issue: Issue, schema: z.ZodType): string[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys") {
    const known = knownKeys(schema, path);
    return issue.keys.map((key) => unknownKeyText([...path, key], known));
  }
  return [path.length === 0 ? issueText(issue) : `${nameOf(path)}: ${issueText(issue)}`];
}

/** Such as `unknown key contex: did you mean context?` @param others names that are meant, too, but not listed */
export function unknownKeyText(
  path: readonly PropertyKey[],
  known: readonly string[],
  others: readonly string[] = [],
): string {
  const meant = nearest(String(path.at(-1)), [...known, ...others]);
  const list = known.length === 0 ? "" : `: the known keys are ${known.join(", ")}`;
  return `unknown key ${nameOf(path)}${meant === undefined ? list : `: did you mean ${meant}?`}`;
}

const nameOf = (path: readonly PropertyKey[]) => path.map(String).join(".");

/** Such as `expected a number, not text`. A message that we wrote for a schema is a clause, or says what is expected. */
export function issueText(issue: Issue): string {
  const { message } = issue;
  if (issue.code === "invalid_union" && message === "Invalid input") return unionText(issue.errors);
  if (issue.code === "invalid_union" && message.startsWith("Invalid discriminator value."))
    return `expected ${inAlternatives([...message.matchAll(/'([^']*)'/g)].map(([, kind = ""]) => kind))}`;
  if (issue.code === "invalid_key" && issue.issues[0] !== undefined)
    return `a name in it is wrong: ${issueText(issue.issues[0])}`;
  if (issue.code === "invalid_format" && message.startsWith("Invalid "))
    return FORMATS[issue.format] ?? "expected text of another form";
  if (/^Too (small|big): /.test(message)) return boundText(issue) ?? message;
  if (issue.code === "invalid_value" && /^Invalid (input|option): /.test(message))
    return `expected ${inAlternatives(issue.values.map(String))}`;
  const [, wanted = "", given = ""] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  const kind = KINDS[wanted] ?? wanted;
  if (given === "undefined") return `is missing: expected ${kind}`;
  // Text that is not a number was read as one.
  if (given === "NaN" || (wanted === "int" && given === "number")) return `expected ${kind}`;
  if (given !== "") return `expected ${kind}, not ${KINDS[given] ?? given}`;
  const own = message.replace(/^Invalid (input|option): /, "");
  return /^(an?|the|at most|at least) /.test(own) ? `expected ${own}` : own;
}

/** What the kinds that a value may have would expect: of the one that the value has, if it has one. */
function unionText(options: readonly (readonly Issue[])[]): string {
  const isOther = ({ code, path }: Issue) => path.length === 0 && /^invalid_(type|value)$/.test(code);
  const [own] = options.find((issues) => !issues.some(isOther)) ?? [];
  if (own !== undefined)
    return own.path.length === 0 ? issueText(own) : `${nameOf(own.path)}: ${issueText(own)}`;
  const kinds = options.flatMap(([issue]) => (issue === undefined ? [] : kindsOf(issue)));
  return `expected ${inAlternatives([...new Set(kinds)])}`;
}

function kindsOf(issue: Issue): string[] {
  if (issue.code === "invalid_value") return issue.values.map(String);
  const kind = issueText(issue)
    .replace(/^(is missing: )?expected /, "")
    .replace(/, not .*$/, "");
  return kind === KINDS["boolean"] ? ["true", "false"] : [kind];
}

const UNITS: Readonly<Record<string, string>> = { string: "character", array: "entry", set: "entry" };
const MANY: Readonly<Record<string, string>> = { character: "characters", entry: "entries" };

function boundText(issue: Issue): string | undefined {
  if (issue.code !== "too_small" && issue.code !== "too_big") return undefined;
  const isSmall = issue.code === "too_small";
  const limit = isSmall ? issue.minimum : issue.maximum;
  const unit = UNITS[issue.origin];
  const bound = `${String(limit)}${unit === undefined ? "" : ` ${Number(limit) === 1 ? unit : MANY[unit]}`}`;
  if (issue.inclusive === false) return `expected ${isSmall ? "more" : "less"} than ${bound}`;
  return `expected at ${isSmall ? "least" : "most"} ${bound}`;
}

/** Keys that the schema knows at a path; none if any key is allowed there. */
export function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let inner: unknown = schema;
  for (const part of path) inner = childOf(inner, String(part));
  const shape = definitionOf(inner)?.["shape"];
  return typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
}

function childOf(schema: unknown, key: string): unknown {
  const definition = definitionOf(schema);
  if (definition?.["type"] === "record") return definition["valueType"];
  if (definition?.["type"] === "array") return definition["element"];
  const shape = definition?.["shape"];
  return typeof shape === "object" && shape !== null ? (shape as Record<string, unknown>)[key] : undefined;
}

/** The library's own description of a schema, without its optional, default and prefault wrappers. */
function definitionOf(schema: unknown): Record<string, unknown> | undefined {
  if (typeof schema !== "object" || schema === null || !("def" in schema)) return undefined;
  const definition = schema.def as Record<string, unknown>;
  return "innerType" in definition ? definitionOf(definition["innerType"]) : definition;
}
