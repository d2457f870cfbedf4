/** Where a tool's schema is none of draft 2020-12, as far as tools get it wrong, in the words of OpenAI's validator. Pure. */
import { isObject, type Json } from "./fields.ts";

const TYPES: readonly unknown[] = ["array", "boolean", "integer", "null", "number", "object", "string"];
const MAPS = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SINGLE = ["additionalProperties", "contains", "items", "not", "propertyNames"];

/** @param needsItems which the draft does not ask for, and OpenAI does */
export function schemaProblem(
  schema: unknown,
  needsItems: boolean,
  context: readonly string[] = [],
): string | undefined {
  const at = `In context=(${context.map((key) => `'${key}'`).join(", ")})`;
  if (typeof schema === "boolean") return undefined;
  if (!isObject(schema))
    return `${at}, ${JSON.stringify(schema) ?? "None"} is not of type 'object', 'boolean'.`;
  const types: readonly unknown[] = [schema["type"] ?? []].flat();
  const unknown = types.find((type) => !TYPES.includes(type));
  if (unknown !== undefined)
    return `${at}, ${JSON.stringify(unknown)} is not valid under any of the given schemas.`;
  if (needsItems && types.includes("array") && schema["items"] === undefined)
    return `${at}, array schema missing items.`;
  const { required, enum: values, exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  for (const list of [required, values])
    if (list !== undefined && !Array.isArray(list))
      return `${at}, ${JSON.stringify(list)} is not of type 'array'.`;
  for (const bound of [above, below])
    if (bound !== undefined && typeof bound !== "number")
      return `${at}, ${JSON.stringify(bound)} is not of type 'number'.`;
  if (typeof schema["pattern"] === "string" && !isRegex(schema["pattern"]))
    return `${at}, '${schema["pattern"]}' is not a 'regex'.`;
  return partsOf(schema, context)
    .map(([part, where]) => schemaProblem(part, needsItems, where))
    .find((problem) => problem !== undefined);
}

function isRegex(pattern: string): boolean {
  try {
    new RegExp(pattern, "u");
    return true;
  } catch {
    return false;
  }
}

/** The schemas in a schema, and where they are. What stands in the place of a map or list of them counts as one, which it is not. */
function partsOf(schema: Json, context: readonly string[]): [unknown, string[]][] {
  return Object.entries(schema).flatMap(([keyword, value]): [unknown, string[]][] => {
    const inside = (isMany: boolean): [unknown, string[]][] =>
      isMany
        ? Object.entries(value as object).map(([name, part]) => [part, [...context, keyword, name]])
        : [[isObject(value) ? undefined : value, [...context, keyword]]];
    if (MAPS.includes(keyword)) return inside(isObject(value));
    if (LISTS.includes(keyword)) return inside(Array.isArray(value));
    return SINGLE.includes(keyword) ? [[value, [...context, keyword]]] : [];
  });
}
