import { z } from "zod";
import type { WrittenCall } from "./reading/read-call.ts";
import type { Tool } from "./tool.ts";

/** What is wrong with a call that could not be read, and an example of a valid input. */
export function describeUnread(
  tool: Tool,
  { input, unread = "" }: Pick<WrittenCall, "input" | "unread">,
): string {
  return typeof input === "string"
    ? `The arguments of ${tool.name} are not valid JSON: ${unread}\nThe call was not made. ${shapeOf(tool)}`
    : wrong(tool, [unread]);
}

/** What is wrong with a tool call's input, what was expected, and an example of a valid input. */
export function describeInput(tool: Tool, error: z.ZodError, remark?: string): string {
  const issues = error.issues.slice(0, 5).map((issue) => {
    const field = issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
    return `${field}${issue.message}`;
  });
  return wrong(tool, remark === undefined ? issues : [...issues, remark]);
}

const wrong = (tool: Tool, issues: readonly string[]): string =>
  [
    `The arguments of ${tool.name} are wrong; the call was not made.`,
    ...issues.map((issue) => `- ${issue}`),
    shapeOf(tool),
  ].join("\n");

const shapeOf = (tool: Tool): string => `A correct call of ${tool.name} has this shape: ${exampleOf(tool)}`;

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
}

/** The input's shape in one line: `{"path": string, "offset"?: integer}`. */
function exampleOf(tool: Tool): string {
  return show(z.toJSONSchema(tool.input, { io: "input" }) as JsonSchema);
}

function show(schema: JsonSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `[${show(schema.items ?? {})}]`;
  if (schema.properties === undefined) return schema.type ?? "any";
  const required = new Set(schema.required);
  const fields = Object.entries(schema.properties).map(
    ([name, field]) => `"${name}"${required.has(name) ? "" : "?"}: ${show(field)}`,
  );
  return `{${fields.join(", ")}}`;
}
