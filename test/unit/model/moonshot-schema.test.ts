import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toMoonshotSchema } from "../../../activities/model/request/tool-schemas.ts";
import { rulesOf } from "../../../activities/model/request/wire-rules.ts";
import { acceptedSchema } from "../../../activities/tools/accepted-schema.ts";
import { toolRegistry, toolSpec } from "../../../activities/tools/index.ts";
import { modelRequest } from "../../support/model-request.ts";
import { moonshotProblem } from "../../support/model-server/moonshot-problem.ts";

type Schema = Record<string, unknown>;

const text = { type: "string" };
const any = { type: ["null", "boolean", "number", "string", "array", "object"] };
/** A whole schema with one property, and what it is in the end. */
const whole = (one: unknown, more: Schema = {}): Schema => ({ type: "object", properties: { one }, ...more });
const adapted = (one: unknown, more: Schema = {}) =>
  (toMoonshotSchema(whole(one, more))["properties"] as Schema)["one"];

describe("what Moonshot refuses, and what it gets instead", () => {
  const object = (properties: Schema, required: readonly string[] = []) => ({
    type: "object",
    properties,
    required,
  });

  it.each<[string, unknown, unknown]>([
    [
      "a type beside alternatives",
      { type: "object", anyOf: [{ properties: { a: text } }, { type: "null" }], description: "One." },
      { anyOf: [object({ a: text }), { type: "null" }], description: "One." },
    ],
    [
      "properties on both levels",
      {
        ...object({ id: text }, ["id"]),
        anyOf: [{ properties: { a: text }, required: ["a"] }, { required: ["id"] }],
      },
      { anyOf: [object({ id: text, a: text }, ["id", "a"]), object({ id: text }, ["id"])] },
    ],
    [
      "defaults on both levels",
      { anyOf: [{ type: "string", default: "a" }, { type: "null" }], default: null },
      { anyOf: [text, { type: "null" }], default: null },
    ],
    [
      "required names that are no properties",
      { type: "object", required: ["a"], properties: {} },
      object({}),
    ],
    ["a choice without its type", { enum: ["a", "b"] }, { type: "string", enum: ["a", "b"] }],
    [
      "a choice with too many",
      { type: ["string", "integer", "null"], enum: ["a"] },
      { type: "string", enum: ["a"] },
    ],
    ["a choice of whole numbers", { type: "number", enum: [1, 2] }, { type: "integer", enum: [1, 2] }],
    ["a choice of numbers", { enum: [1, 1.5] }, { type: "number", enum: [1, 1.5] }],
    ["a choice of numbers or null", { enum: [1, null] }, { type: ["null", "integer"], enum: [1, null] }],
    ["a choice of several kinds", { enum: ["a", 1], description: "B." }, { ...any, description: "B." }],
    ["a choice of objects", { type: "object", enum: [{ a: 1 }] }, { type: "object" }],
    ["a single value", { const: "a" }, { type: "string", enum: ["a"] }],
    ["a schema that is a flag", true, any],
    ["a property that is one", object({ a: true }), object({ a: any })],
    ["no type of an object", { properties: {} }, object({})],
    ["no type of a list", { items: text }, { type: "array", items: text }],
    [
      "references where it takes none",
      { type: "object", not: { $ref: "#" }, default: { $ref: 1 } },
      { type: "object" },
    ],
    [
      "a property that looks like a reference",
      object({ $ref: text, a: text }, ["$ref"]),
      object({ a: text }),
    ],
    ["alternatives of other names", { oneOf: [text, { type: "null" }] }, { anyOf: [text, { type: "null" }] }],
  ])("%s", (_what, given, expected) => {
    expect(adapted(given)).toEqual(expected);
    expect(moonshotProblem(toMoonshotSchema(whole(given)))).toBeUndefined();
  });

  it("references lead to definitions at the top, alone or as the only alternative", () => {
    const schema = toMoonshotSchema(
      whole(
        { $ref: "#/definitions/a~1b", description: "One.", type: "string" },
        {
          required: ["one"],
          additionalProperties: { $ref: "#/properties/one" },
          definitions: { "a/b": { type: "array", items: { $ref: "#/definitions/b" } }, b: { $ref: "#" } },
        },
      ),
    );
    expect(schema).toEqual({
      type: "object",
      properties: { one: { anyOf: [{ $ref: "#/$defs/a_1b" }], description: "One." } },
      required: ["one"],
      additionalProperties: { $ref: "#/$defs/one" },
      $defs: {
        a_1b: { type: "array", items: { $ref: "#/$defs/b" } },
        one: { anyOf: [{ $ref: "#/$defs/a_1b" }], description: "One." },
        b: { $ref: "#" },
      },
    });
    expect(moonshotProblem(schema)).toBeUndefined();
  });

  it("definitions of one name stay apart, and none has a slash in a name", () => {
    const schema = toMoonshotSchema(
      whole(
        { $ref: "#/$defs/a" },
        {
          additionalProperties: { $ref: "#/definitions/a" },
          $defs: { a: text },
          definitions: { a: { type: "object", properties: { "b/c": text, d: text }, required: ["b/c"] } },
        },
      ),
    );
    expect(schema["$defs"]).toEqual({ a: text, a_: object({ d: text }) });
    expect(moonshotProblem(schema)).toBeUndefined();
  });
});

it("what alternatives share is repeated within limits, however deep it is", () => {
  let deep: Schema = text;
  for (let level = 0; level < 30; level += 1)
    deep = { type: "object", properties: { deep, beside: text }, anyOf: [{ title: "A" }, { title: "B" }] };
  const schema = toMoonshotSchema(acceptedSchema(whole(deep)).inputSchema);
  expect(JSON.stringify(schema).length).toBeLessThan(50_000);
  expect(moonshotProblem(schema)).toBeUndefined();
});

it("our own tools are the same to it", () => {
  for (const tool of toolRegistry.values()) {
    const { inputSchema } = toolSpec(tool);
    const schema = toMoonshotSchema(inputSchema);
    expect(moonshotProblem(schema)).toBeUndefined();
    expect(Object.keys(schema["properties"] as Schema)).toEqual(
      Object.keys((inputSchema["properties"] ?? {}) as Schema),
    );
  }
});

const KEYWORDS =
  "type properties required items anyOf oneOf allOf not $ref $defs enum const default additionalProperties".split(
    " ",
  );

/** What a server may list, more or less a schema. */
const schemas = fc.letrec<{ one: unknown; object: unknown; map: Schema }>((tie) => ({
  map: fc.dictionary(fc.constantFrom("a", "b", "type", "$ref", "required", "a/b", "__proto__"), tie("one"), {
    maxKeys: 3,
  }),
  object: fc.record(
    {
      type: fc.constantFrom("object", "string", "integer", ["string", "null"]),
      description: fc.constant("A."),
      properties: tie("map"),
      required: fc.subarray(["a", "b", "a/b", "$ref"]),
      enum: fc.constantFrom(["a"], [1, null], [1.5, 1], ["a", null], ["a", 1], [true], [null], [{}]),
      const: fc.constantFrom("a", 1, null, { $ref: 1 }),
      default: fc.constantFrom(null, "a", { $ref: "#" }, [{ "a/b": 1 }]),
      anyOf: fc.array(tie("one"), { maxLength: 3 }),
      oneOf: fc.array(tie("one"), { maxLength: 3 }),
      allOf: fc.array(tie("one"), { maxLength: 2 }),
      items: tie("one"),
      additionalProperties: tie("one"),
      not: tie("one"),
    },
    { requiredKeys: [] },
  ),
  one: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(true, "any", { $ref: "#" }, { $ref: "#/$defs/b", description: "B.", type: "string" }),
    fc.constantFrom("#/$defs/a", "#/properties/a", "#/$defs/gone").map(($ref) => ({ $ref })),
    tie("object"),
    fc.dictionary(fc.constantFrom(...KEYWORDS), tie("one"), { maxKeys: 3 }),
  ),
}));

it("takes whatever a server lists, in the end", () => {
  const root = fc.record(
    {
      properties: schemas.map,
      required: fc.subarray(["a", "b"]),
      $defs: fc.record({ a: schemas.one, b: schemas.one }),
    },
    { requiredKeys: ["properties"] },
  );
  fc.assert(
    fc.property(root, (given) => {
      const schema = toMoonshotSchema(acceptedSchema(given).inputSchema);
      expect(schema["type"]).toBe("object");
      expect(moonshotProblem(schema)).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

it("is what Kimi's models get, by whatever name, and no others", () => {
  const schemasOf = (model: string, modelName?: string) =>
    rulesOf(modelRequest({ model, api: "chat", modelName }).target).schemas;
  expect(schemasOf("kimi/k3", "k3")).toBe("moonshot");
  expect(schemasOf("openrouter/moonshotai/kimi-k3")).toBe("moonshot");
  expect(schemasOf("fast", "kimi-k3")).toBe("moonshot");
  expect(schemasOf("deepseek/deepseek-v4-pro")).toBe("full");
});
