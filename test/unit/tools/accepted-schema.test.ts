import fc from "fast-check";
import { expect, it } from "vitest";
import { acceptedSchema } from "../../../activities/tools/accepted-schema.ts";
import { schemaProblem } from "../../support/model-server/schema-problem.ts";

const text = { type: "string" };
const number = { type: "number" };
const object = (properties: object) => ({ type: "object", properties });
const shown = (schema: Record<string, unknown>) => acceptedSchema(schema).inputSchema;
const one = (given: unknown) => object({ one: given });
/** An array of these items, or of items that are not described. */
const list = (...[items]: readonly unknown[]) => ({
  type: "array",
  ...(items === undefined ? {} : { items }),
});

it("leaves a schema as it is that every provider takes", () => {
  const schema = {
    type: "object",
    properties: {
      path: { type: "string", pattern: "^/", description: "Where." },
      tags: { type: "array", items: { enum: ["a", "b"] } },
      shape: { oneOf: [{ type: "null" }, { $ref: "#/$defs/shape" }] },
    },
    required: ["path"],
    additionalProperties: false,
    $defs: { shape: { type: "object", properties: { of: text } } },
  };
  expect(shown(schema)).toEqual(schema);
});

it.each([
  ["no arguments", {}, object({})],
  ["another type", { type: "string" }, object({})],
  ["properties that are none", { properties: ["a"] }, object({})],
  ["required as a name", { properties: { coin: text, required: ["coin"] } }, object({ coin: text })],
  ["a list of anything", one(list()), one(list({}))],
  ["a list or null", one({ type: ["array", "null"] }), one({ type: ["array", "null"], items: {} })],
  ["a list in a list", one(list(list())), one(list(list({})))],
  ["a tuple of older drafts", one(list([text, number])), one(list({ anyOf: [text, number] }))],
  ["required as a flag", one({ ...text, required: true }), one(text)],
  [
    "bounds of older drafts",
    one({ ...number, minimum: 0, exclusiveMinimum: true }),
    one({ ...number, minimum: 0 }),
  ],
  ["a type of no draft", one({ type: "str", description: "A." }), one({ description: "A." })],
  ["an empty choice", one({ type: "string", enum: [] }), one(text)],
  [
    "values of the wrong kind",
    one({ ...text, description: null, minLength: "1", maxLength: null, examples: "a", title: ["A"] }),
    one(text),
  ],
  ["a type that is no word", one({ type: { toString: 1, valueOf: 1 } }), one({})],
  ["a type in two lists", one({ type: [["object"]] }), one({})],
  ["the same twice", one({ type: ["null", "null"] }), one({ type: ["null"] })],
  [
    "what requires nothing",
    one({ properties: { a: text }, required: ["a", "a", "b"] }),
    one({ properties: { a: text }, required: ["a"] }),
  ],
  [
    "references to nothing",
    one({ anyOf: [{ $ref: "#/$defs/gone" }, { $ref: "other.json" }, { $ref: 1 }] }),
    one({ anyOf: [{}, {}, {}] }),
  ],
  [
    "a name and dialect of its own",
    one({ ...text, $schema: "http://json-schema.org/draft-07/schema#", $id: "x" }),
    one(text),
  ],
])("corrects what providers refuse: %s", (_what, given, expected) => {
  expect(shown(given)).toEqual(expected);
});

it("shows the arguments of all alternatives, and requires what each of them does", () => {
  const move = {
    type: "object",
    properties: { kind: { const: "move" }, to: text },
    required: ["kind", "to"],
  };
  const drop = { type: "object", properties: { kind: { const: "drop" } }, required: ["kind"] };
  expect(shown({ anyOf: [move, drop], properties: { id: text }, required: ["id"] })).toEqual({
    type: "object",
    properties: { id: text, kind: { anyOf: [{ const: "move" }, { const: "drop" }] }, to: text },
    required: ["id", "kind"],
  });
  expect(
    shown({
      type: "object",
      properties: { a: text, b: text },
      oneOf: [{ required: ["a"] }, { required: ["b"] }],
    }),
  ).toEqual({ type: "object", properties: { a: text, b: text } });
  expect(shown({ $ref: "#/definitions/all", definitions: { all: { allOf: [move, drop] } } })).toMatchObject({
    properties: { to: text },
    required: ["kind", "to"],
  });
});

it("keeps a reference to what is there, and none to what moved", () => {
  const list = { type: "array", items: text };
  const kept = {
    type: "object",
    properties: { one: list, two: { $ref: "#/properties/one/items" }, three: { $ref: "#/$defs/a~1%C3%A4" } },
    $defs: { "a/ä": text },
  };
  expect(shown(kept)).toEqual(kept);
  expect(
    shown({ anyOf: [{ properties: { one: list, two: { $ref: "#/anyOf/0/properties/one" } } }] }),
  ).toEqual({ type: "object", properties: { one: list, two: {} } });
  expect(shown({ properties: { "1<": list, two: { $ref: "#/properties/1<" } } })).toHaveProperty(
    "properties.two",
    {},
  );
});

it("renames arguments that Anthropic refuses, and gives them back their names in a call", () => {
  const { inputSchema, original } = acceptedSchema({
    properties: { "StartTime<": text, "StartTime>": text, "filter[a]": text, id: text, 項目: text },
    required: ["StartTime<", "id"],
  });
  const names = Object.keys(inputSchema["properties"] as object);
  expect(new Set(names).size).toBe(5);
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/);
  expect(inputSchema["required"]).toEqual([names[0], "id"]);
  const given = Object.fromEntries(names.map((name, place) => [name, place]));
  expect(original({ ...given, other: 1 })).toEqual({
    "StartTime<": 0,
    "StartTime>": 1,
    "filter[a]": 2,
    id: 3,
    項目: 4,
    other: 1,
  });
});

it("reads schemas that refer to themselves or are nested without end", () => {
  expect(shown({ $ref: "#/$defs/a", $defs: { a: { allOf: [{ $ref: "#/$defs/a" }] } } })).toMatchObject({
    type: "object",
  });
  const itself = { allOf: [{ $ref: "#/$defs/a" }], properties: { a: text } };
  const after = { allOf: [{ allOf: [{ properties: { b: text } }] }] };
  expect(shown({ allOf: [{ $ref: "#/$defs/a" }, after], $defs: { a: itself } })).toMatchObject({
    properties: { a: text, b: text },
  });
  let deep: Record<string, unknown> = text;
  for (let level = 0; level < 5_000; level += 1) deep = { not: deep };
  expect(JSON.stringify(shown(one(deep))).length).toBeLessThan(1_000);
});

/** Schemas as every provider takes them: arguments are objects, lists of something, alternatives or anything. */
const valid = fc.letrec<{ one: Record<string, unknown>; map: object }>((tie) => ({
  map: fc.dictionary(
    fc.constantFrom("a", "type", "items", "properties", "required", "__proto__", "$ref"),
    tie("one"),
    {
      maxKeys: 3,
    },
  ),
  one: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      {},
      text,
      { type: ["integer", "null"], minimum: 0 },
      { enum: [1, null] },
      { $ref: "#/$defs/a" },
    ),
    fc.record({ type: fc.constant("array"), items: tie("one") }),
    fc.record({ type: fc.constant("object"), properties: tie("map"), additionalProperties: tie("one") }),
    fc.record({ anyOf: fc.array(tie("one"), { minLength: 1, maxLength: 2 }), description: fc.string() }),
    fc.record({ not: tie("one"), default: fc.jsonValue() }),
  ),
}));

it("leaves any schema as it is that every provider takes", () => {
  fc.assert(
    fc.property(valid.map, (properties) => {
      const schema = { ...one({ properties }), $defs: { a: text } };
      expect(shown(schema)).toEqual(schema);
    }),
  );
});

const KEYWORDS =
  "type properties required items anyOf oneOf allOf not $ref $defs enum additionalProperties exclusiveMinimum".split(
    " ",
  );

it("makes of whatever a server lists what OpenAI takes", () => {
  const whatever = fc.letrec<{ one: unknown }>((tie) => ({
    one: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom("object", "array", "any", "#/$defs/a", "#", true, null, 1),
      fc.array(tie("one"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...KEYWORDS, "a", "__proto__"), tie("one"), { maxKeys: 5 }),
    ),
  })).one;
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...KEYWORDS), whatever), (schema) => {
      const { type, allOf, anyOf, oneOf, ...rest } = shown(schema);
      expect([type, allOf, anyOf, oneOf]).toEqual(["object", undefined, undefined, undefined]);
      expect(schemaProblem(rest, true)).toBeUndefined();
    }),
  );
});
