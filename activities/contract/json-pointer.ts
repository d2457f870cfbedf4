/** Resolves a JSON schema's `$ref` into the schema itself. Source: RFC 6901, in its form for URLs. Pure. */
import { type JsonObject } from "./json-object.ts";

/**
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
