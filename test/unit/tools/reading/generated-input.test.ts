import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toolRegistry } from "../../../../activities/tools/index.ts";
import { read } from "../../../support/read-input.ts";

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
}

/** Values that a schema allows, without empty texts for optional fields. */
function allowed({
  type,
  enum: choices,
  properties = {},
  required = [],
  items = {},
  minimum = 1,
}: Schema): fc.Arbitrary<unknown> {
  if (choices !== undefined) return fc.constantFrom(...choices);
  if (type === "string") return fc.string({ minLength: 1 }).filter((text) => text.trim() !== "");
  if (type === "integer" || type === "number") return fc.integer({ min: Math.max(1, minimum), max: 900 });
  if (type === "boolean") return fc.boolean();
  if (type === "array")
    return fc.uniqueArray(allowed(items), {
      minLength: 2,
      maxLength: 5,
      selector: (item) => JSON.stringify((item as { label?: string }).label?.trim() ?? item),
    });
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, allowed(field)]),
  );
  return fc.record(fields, { requiredKeys: [...required] });
}

describe.each([...toolRegistry.keys()])("generated input of %s", (name) => {
  const tool = toolRegistry.get(name);
  const schema = (tool === undefined ? {} : z.toJSONSchema(tool.input, { io: "input" })) as Schema;
  const RUNS = { seed: 35, numRuns: 300 };

  it("is untouched where the schema allows it", () => {
    fc.assert(
      fc.property(allowed(schema), (given) => {
        expect(read(name, given)).toMatchObject({ input: given, remarks: [], refusals: [] });
      }),
      RUNS,
    );
  });

  it("is read the same with values as text, absent fields as null, and names spelled otherwise", () => {
    const camel = (field: string) => field.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    fc.assert(
      fc.property(allowed(schema), (given) => {
        const fields = Object.entries(given as Record<string, unknown>).map(([field, value]) => [
          camel(field),
          typeof value === "string" ? value : JSON.stringify(value),
        ]);
        const absent = Object.keys(schema.properties ?? {}).filter((field) => !(field in (given as object)));
        const spelled = Object.fromEntries([...fields, ...absent.map((field) => [field, null])]) as object;
        expect(read(name, spelled)).toMatchObject({ input: given, remarks: [], refusals: [] });
      }),
      RUNS,
    );
  });

  it("is read once and for all", () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom(...Object.keys(schema.properties ?? {}), "file_path", "timeout", "x"),
          fc.jsonValue() as fc.Arbitrary<unknown>,
        ),
        (given) => {
          const once = read(name, given);
          if (once.refusals.length === 0)
            expect(read(name, once.input)).toMatchObject({ input: once.input, remarks: [] });
        },
      ),
      RUNS,
    );
  });
});
