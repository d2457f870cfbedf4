import { describe, expect, it } from "vitest";
import {
  checkAnswer,
  MAX_SCHEMA_CHARS,
  parseOutput,
  schemaTrouble,
} from "../../activities/config/output-schema.ts";
import { readOutputSchema } from "../../client/sessions/prepare-start.ts";

const schema = {
  type: "object",
  properties: { name: { type: "string" }, count: { type: "integer", minimum: 1 } },
  required: ["name"],
  additionalProperties: false,
};

describe("an answer", () => {
  it.each([
    ["bare", '{"name":"a","count":2}'],
    ["in a fence", '\n```json\n{"name":"a","count":2}\n```\n'],
  ])("is taken %s", async (_, text) => {
    expect(await checkAnswer(schema, text)).toMatchObject({ ok: true, value: { name: "a", count: 2 } });
  });

  it.each([
    ['It is {"name":"a"}.', /^it is not JSON/],
    ["  ", /^it is empty$/],
    ['{"count":0}', /name.*count must be >= 1/],
    ['{"name":"a","more":1}', /additional properties/],
  ])("%j is refused with the reason", async (text, why) => {
    expect(await checkAnswer(schema, text)).toEqual({ ok: false, why: expect.stringMatching(why) });
  });

  it("is validated if the schema names no type, and by references, conditions and formats", async () => {
    const fails = async (own: Record<string, unknown>, value: unknown) =>
      !(await checkAnswer(own, JSON.stringify(value))).ok;
    expect(await fails({ required: ["a"] }, {})).toBe(true);
    expect(await fails({ $ref: "#/$defs/n", $defs: { n: { type: "number" } } }, "1")).toBe(true);
    const conditional = JSON.parse('{"if": {"required": ["a"]}, "then": {"required": ["b"]}}') as object;
    expect(await fails({ ...conditional }, { a: 1 })).toBe(true);
    expect(await fails({ type: "string", format: "date-time" }, "soon")).toBe(true);
    const draft7 = { $schema: "http://json-schema.org/draft-07/schema#", items: [{ type: "string" }] };
    expect(await fails(draft7, [1])).toBe(true);
  });
});

it("is read from a completed session, and from no other", () => {
  const row = { status: "completed", result: '{"name":"a"}' };
  expect(parseOutput({ outputSchema: schema }, row)).toMatchObject({ value: { name: "a" } });
  const fenced = { ...row, result: '```json\n{"name": "a"}\n```' };
  expect(parseOutput({ outputSchema: schema }, fenced)?.text).toBe('{"name": "a"}');
  expect(parseOutput({}, row)).toBeUndefined();
  expect(parseOutput({ outputSchema: schema }, { ...row, status: "max_steps" })).toBeUndefined();
});

it.each([
  [{ type: "objekt" }],
  [{ type: "object", required: "name" }],
  [{ $ref: "https://example.com/other.json" }],
  [{ $schema: "http://json-schema.org/draft-04/schema#" }],
  [{ description: "x".repeat(MAX_SCHEMA_CHARS) }],
  [{ enum: JSON.parse("[".repeat(200) + "]".repeat(200)) as unknown }],
  [{ enum: JSON.parse("[".repeat(500_000) + "]".repeat(500_000)) as unknown }],
])("an unusable schema is refused before anything starts", async (bad) => {
  expect(await schemaTrouble(bad)).toEqual(expect.any(String));
  await expect(readOutputSchema(bad)).rejects.toMatchObject({ exitCode: 2 });
});

it("a missing file, or one without a schema, is refused by its name", async () => {
  await expect(readOutputSchema("/nowhere/schema.json")).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining("/nowhere/schema.json") as string,
  });
});

describe("a schema that would keep or end its worker", () => {
  const doubled = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      `d${at + 1}`,
      { allOf: [{ $ref: `#/$defs/d${at}` }, { $ref: `#/$defs/d${at}` }] },
    ]),
  );
  it.each<[string, Record<string, unknown>, unknown]>([
    ["a pattern that backtracks", { pattern: "^(a+)+$" }, `${"a".repeat(50)}!`],
    ["references that double", { $defs: { d0: { type: "number" }, ...doubled }, $ref: "#/$defs/d40" }, 1],
    ["a reference to itself", { $ref: "#" }, 1],
    ["a reference that is not there", { $ref: "https://example.com/a.json" }, 1],
    ["no schema at all", { type: "nonsense" }, 1],
  ])("is one that no answer fits: %s", async (_what, schema, value) => {
    const checked = await checkAnswer(schema, JSON.stringify(value));
    expect(checked).toMatchObject({ ok: false, why: expect.stringContaining("it cannot be checked: ") });
  });

  it("gives its verdict at once, also if it asks for a promise", async () => {
    const checked = await checkAnswer({ $async: true, type: "string" }, "1");
    expect(checked).toEqual({ ok: false, why: "data must be string" });
  });
});

it("an answer of empty lines in a fence is looked at in no time", async () => {
  const begun = process.cpuUsage().user;
  expect((await checkAnswer({}, `\`\`\`${"\n".repeat(100_000)}x`)).ok).toBe(false);
  expect((process.cpuUsage().user - begun) / 1_000).toBeLessThan(1_000);
});
