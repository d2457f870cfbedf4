import { z } from "zod";
import { oneLine } from "./paths.ts";
import type { Tool } from "./tool.ts";

/** What is wrong with a tool call's input, what was expected, and an example of a valid input. */
export function describeInput(tool: Tool, input: unknown, error: z.ZodError): string {
  const shape = `A correct call of ${tool.name} has this shape: ${exampleOf(tool)}`;
  if (typeof input === "string") {
    return `The arguments of ${tool.name} are not valid JSON: ${oneLine(input, 200)}\nThe call was not made. ${shape}`;
  }
  const issues = error.issues.slice(0, 5).map((issue) => {
    const field = issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
    return `- ${field}${issue.message}`;
  });
  return [`The arguments of ${tool.name} are wrong; the call was not made.`, ...issues, shape].join("\n");
}

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
