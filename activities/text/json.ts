/** Objects in JSON's sense: external values of which nothing is known, and references into them. */

/** An external value that is an object. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value if it is an object, otherwise an empty one: to read fields that may be missing. */
export const toObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

/**
 * Resolves a JSON schema's `$ref` into the schema itself. Source: RFC 6901, in its form for URLs.
 * @param ref such as `#/a/b`
 * @returns undefined if nothing is there
 */
export function referenced(ref: unknown, root: JsonObject): unknown {
  if (typeof ref !== "string" || !/^#(?:\/|$)/.test(ref)) return undefined;
  const names = ref.split("/").slice(1);
  return names.reduce<unknown>((at, name) => {
    const own = decoded(name).replaceAll("~1", "/").replaceAll("~0", "~");
    return typeof at === "object" && at !== null && Object.hasOwn(at, own)
      ? (at as JsonObject)[own]
      : undefined;
  }, root);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
