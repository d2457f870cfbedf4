/** What a schema found wrong with a value, as people read it: the schema library has words of its own. Pure. */
import type { z } from "zod";

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

/** Such as `expected a number, not text`; a message that we wrote for a schema is unchanged. */
export function issueText(issue: z.core.$ZodIssue): string {
  const { message } = issue;
  if (/^Too (small|big): /.test(message)) return boundText(issue) ?? message;
  if (issue.code === "invalid_value" && /^Invalid (input|option): /.test(message))
    return `expected ${choiceOf(issue.values.map(String))}`;
  const [, wanted = "", given = ""] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  const kind = KINDS[wanted] ?? wanted;
  if (given === "undefined") return `is missing: expected ${kind}`;
  if (wanted === "int" && given === "number") return `expected ${kind}`;
  if (given !== "") return `expected ${kind}, not ${KINDS[given] ?? given}`;
  return message.replace(/^Invalid (input|option): /, "");
}

/** The issue with the name of its field, such as `limits.maxSteps: expected more than 0`. */
export function namedIssueText(issue: z.core.$ZodIssue): string {
  const text = issueText(issue);
  return issue.path.length === 0 ? text : `${issue.path.map(String).join(".")}: ${text}`;
}

const UNITS: Readonly<Record<string, string>> = { string: " characters", array: " entries", set: " entries" };

function boundText(issue: z.core.$ZodIssue): string | undefined {
  if (issue.code !== "too_small" && issue.code !== "too_big") return undefined;
  const isSmall = issue.code === "too_small";
  const bound = `${String(isSmall ? issue.minimum : issue.maximum)}${UNITS[issue.origin] ?? ""}`;
  if (issue.inclusive === false) return `expected ${isSmall ? "more" : "less"} than ${bound}`;
  return `expected at ${isSmall ? "least" : "most"} ${bound}`;
}

/** `a`, `a or b`, `a, b or c`. */
function choiceOf(values: readonly string[]): string {
  return values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}
