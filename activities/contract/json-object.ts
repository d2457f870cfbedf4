/** An external value that is an object in JSON's sense. Pure. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value if it is an object, otherwise an empty one: to read fields that may be missing. */
export const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
