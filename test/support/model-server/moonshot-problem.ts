/**
 * What Moonshot refuses in a tool's schema, in its own words. Not here: limits of size, recursion without an end. Pure.
 * Source: its validator, walle (level "lite").
 */
import { isObject, type Json } from "./fields.ts";

const SCALARS: readonly unknown[] = ["boolean", "integer", "number", "string"];

/** @param root that has passed the checks of all servers */
export function moonshotProblem(root: Json): string | undefined {
  return slashProblem(root["$defs"]) ?? problemOf(root, [], root);
}

function problemOf(schema: unknown, path: readonly string[], root: Json): string | undefined {
  const at = `At path '${path.join(".") || "root"}': `;
  if (!isObject(schema)) return `${at}schema must be an object`;
  const { $ref, anyOf, type } = schema;
  if (type !== undefined && anyOf !== undefined)
    return `${at}when using anyOf, type should be defined in anyOf items instead of the parent schema`;
  if (type !== undefined && $ref !== undefined)
    return `${at}when using $ref, type should be defined in the referenced schema instead of the parent schema`;
  const ownProblem =
    requiredProblem(schema) ??
    enumProblem(schema) ??
    refProblem(schema, root) ??
    branchProblem(schema) ??
    strayProblem(schema);
  if (ownProblem !== undefined) return `${at}${ownProblem}`;
  const { properties, items, additionalProperties, $defs } = schema;
  const parts = [
    ...under("$defs", $defs),
    ...under("properties", properties),
    ...(items === undefined ? [] : [["items", items] as const]),
    ...(isObject(additionalProperties) ? [["additionalProperties", additionalProperties] as const] : []),
    ...(Array.isArray(anyOf) ? anyOf.map((branch: unknown) => ["anyOf", branch] as const) : []),
  ];
  return parts
    .map(([where, part]) => problemOf(part, [...path, where], root))
    .find((problem) => problem !== undefined);
}

const under = (keyword: string, map: unknown) =>
  isObject(map) ? Object.entries(map).map(([name, part]) => [`${keyword}.${name}`, part] as const) : [];

function requiredProblem({ required, properties }: Json): string | undefined {
  if (required === undefined) return undefined;
  if (!Array.isArray(required)) return "required must be an array";
  const names = isObject(properties) ? properties : {};
  const missing = required.find((name) => !Object.hasOwn(names, String(name)));
  return missing === undefined
    ? undefined
    : `required property '${String(missing)}' is not defined in properties`;
}

function enumProblem({ enum: values, type }: Json): string | undefined {
  if (!Array.isArray(values)) return undefined;
  if (type === undefined) return "type is not defined";
  const types = [type].flat();
  const [other, ...more] = types.filter((kind) => kind !== "null");
  if (more.length > 0 || (types.length > 1 && !SCALARS.includes(other)))
    return "when type is array and enum is specified, currently only 2 types are supported, one must be null, and the other can be string/integer/number/boolean";
  return values.map((value) => valueProblem(value, types)).find((problem) => problem !== undefined);
}

/** It compares the types in their order, and ends at a number's if the value is none. */
function valueProblem(value: unknown, types: readonly unknown[]): string | undefined {
  for (const type of types) {
    if (type === "null" ? value === null : type === typeof value) return undefined;
    if (type === "integer" && Number.isInteger(value)) return undefined;
    if (type === "integer" || type === "number") return `not a valid ${type}`;
  }
  return `enum value (${String(value)}) does not match any type in [${types.join(" ")}]`;
}

function refProblem({ $ref, ...beside }: Json, root: Json): string | undefined {
  if ($ref === undefined || $ref === "#") return undefined;
  if (typeof $ref !== "string") return "$ref must be a string";
  if (!$ref.startsWith("#/$defs/")) return "references must start with #/$defs/";
  const target = isObject(root["$defs"]) ? root["$defs"][$ref.slice("#/$defs/".length)] : undefined;
  if (!isObject(target)) return `invalid $ref path: ${$ref}`;
  const both = Object.keys(target).filter((keyword) => Object.hasOwn(beside, keyword));
  return both.length === 0
    ? undefined
    : `conflicting keywords found after $ref expansion: ${both.join(", ")}`;
}

function branchProblem({ anyOf, ...beside }: Json): string | undefined {
  if (!Array.isArray(anyOf)) return undefined;
  const inside = anyOf.filter(isObject).flatMap((branch) => Object.keys(branch));
  const both = inside.filter(
    (keyword) => Object.hasOwn(beside, keyword) && keyword !== "description" && keyword !== "title",
  );
  return both.length === 0
    ? undefined
    : `conflicting keywords found in anyOf with parent: keywords (${both.join(", ")}) are defined on the parent schema and inside anyOf`;
}

/** It looks for references in every object, also where none can be. */
function strayProblem(schema: Json): string | undefined {
  const { properties, items: _items, additionalProperties: _rest, $defs: _definitions, ...others } = schema;
  const isStray =
    (isObject(properties) && Object.hasOwn(properties, "$ref")) ||
    Object.values(others).some((value) => hasKey(value, (name) => name === "$ref"));
  return isStray ? "$ref is not allowed in this schema." : undefined;
}

function slashProblem(definitions: unknown): string | undefined {
  return hasKey(definitions, (name) => name.includes("/"), true)
    ? "At path '$defs': $defs property name cannot contain '/' character"
    : undefined;
}

/** Whether an object in it has a key that `fits`. */
export function hasKey(value: unknown, fits: (name: string) => boolean, alsoInLists = false): boolean {
  if (Array.isArray(value)) return alsoInLists && value.some((entry) => hasKey(entry, fits, true));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([name, inner]) => fits(name) || hasKey(inner, fits, alsoInLists));
}
