import { expect, test } from "vitest";
import { z } from "zod";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { catalogueSchema } from "../../activities/config/catalogue/catalogue.ts";
import { issueTexts, knownKeys } from "../../activities/config/issue-text.ts";
import { operatorPolicySchema } from "../../activities/config/operator-policy.ts";
import { parse } from "../../client/serve/http.ts";
import { checked } from "../../client/sessions/flag-values.ts";

const schema = z.strictObject({
  count: z.number().int().min(1).max(5).optional(),
  share: z.number().positive().optional(),
  name: z.string().min(2).optional(),
  kind: z.enum(["a", "b", "c"]).optional(),
  own: z.string().regex(/x/, "must contain an x").optional(),
  noun: z.string().regex(/x/, "a text with an x").optional(),
  either: z.union([z.number().max(1), z.enum(["all", "none"])]).optional(),
  nested: z.union([z.literal(false), z.strictObject({ at: z.iso.date() })]).optional(),
  page: z.url().optional(),
});

const textOf = (value: unknown): string => {
  const { error } = schema.safeParse(value);
  return error === undefined ? "none" : issueTexts(error, schema).join("; ");
};

test.each([
  [{ count: 9 }, "count: expected at most 5"],
  [{ count: 0 }, "count: expected at least 1"],
  [{ count: 1.5 }, "count: expected a whole number"],
  [{ count: "1" }, "count: expected a number, not text"],
  [{ share: 0 }, "share: expected more than 0"],
  [{ name: "x" }, "name: expected at least 2 characters"],
  [{ kind: "d" }, "kind: expected a, b or c"],
  [{ own: "y" }, "own: must contain an x"],
  [{ noun: "y" }, "noun: expected a text with an x"],
  [{ name: "" }, "name: expected at least 2 characters"],
  [{ either: "some" }, "either: expected a number, all or none"],
  [{ either: 2 }, "either: expected at most 1"],
  [{ nested: { at: "today" } }, "nested.at: expected a day such as 2026-11-23"],
  [{ nested: 3 }, "nested: expected false or a group of settings"],
  [{ page: "x" }, "page: expected an address such as https://host.example/path"],
  [{ cuont: 1 }, "unknown key cuont: did you mean count?"],
  [[], "expected a group of settings, not a list"],
])("a value that a schema refuses is described without the library's wording: %j", (value, text) => {
  expect(textOf(value)).toBe(text);
});

test("flags and the API describe it in the same words", () => {
  expect(() => checked(z.number().max(5), Number)("9")).toThrow("Expected at most 5.");
  expect(() => parse(schema, { count: 9, kind: "d" })).toThrow(
    "count: expected at most 5; kind: expected a, b or c.",
  );
});

test("the known keys of each level are those of the schema", () => {
  expect(knownKeys(agentConfigSchema, [])).toContain("mcpServers");
  expect(knownKeys(agentConfigSchema, ["tools", "bash", "limits"])).toContain("maxChars");
  expect(knownKeys(agentConfigSchema, ["permissions", 0])).toContain("match");
  expect(knownKeys(agentConfigSchema, ["sandbox", "env"])).toEqual([]);
});

const WRONG = [
  null,
  "",
  "x!",
  -1,
  1.5,
  1e12,
  true,
  {},
  [],
  ["x!"],
  [3],
  { zz: 1 },
  { "a b!": "x" },
  { name: 3 },
];
const LIBRARY_WORDS =
  /Invalid|Unrecognized|Too (small|big)|received|must match|NaN|undefined|expected expected/;

test.each([
  ["longhaul.yaml", agentConfigSchema],
  ["a policy", operatorPolicySchema],
  ["a catalogue", catalogueSchema],
])("no wrong value anywhere in %s is described in the library's words", (_file, wholeSchema) => {
  const texts = new Set<string>();
  for (const path of pathsIn(wholeSchema)) {
    for (const wrong of WRONG) {
      const value = path.reduceRight<unknown>(
        (inner, key) => (key === "0" ? [inner] : { [key]: inner }),
        wrong,
      );
      const { error } = wholeSchema.safeParse(value);
      for (const text of error === undefined ? [] : issueTexts(error, wholeSchema)) texts.add(text);
    }
  }
  expect(texts.size).toBeGreaterThan(20);
  expect([...texts].filter((text) => LIBRARY_WORDS.test(text))).toEqual([]);
});

/** Where a schema's values are: `a` is any name of a record, `0` any entry of a list. */
function pathsIn(schema: unknown, path: readonly string[] = []): (readonly string[])[] {
  const { def = {} } = schema as { readonly def?: Readonly<Record<string, unknown>> };
  const inner = (part: unknown, key?: string) => pathsIn(part, key === undefined ? path : [...path, key]);
  if (def["innerType"] !== undefined) return inner(def["innerType"]);
  const below = [
    ...Object.entries((def["shape"] ?? {}) as object).map(([key, part]) => inner(part, key)),
    ...((def["options"] ?? []) as readonly unknown[]).map((part) => inner(part)),
    ...[def["in"], def["out"]].filter((part) => part !== undefined).map((part) => inner(part)),
    ...(def["valueType"] === undefined ? [] : [inner(def["valueType"], "a")]),
    ...(def["element"] === undefined ? [] : [inner(def["element"], "0")]),
  ];
  return [path, ...below.flat()];
}
