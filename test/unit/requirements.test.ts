/** What a worker's surroundings must be able to do: the manual's table, doctor's checks, and what each takes for unfit. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, it } from "vitest";
import { REQUIREMENTS } from "../../client/setup/doctor.ts";
import { unfitPostgres } from "../../temporal/postgres-probe.ts";
import { hasSearchAttributes, SEARCH_ATTRIBUTES } from "../../temporal/search-attributes.ts";

it("each row of the manual's table is a check of doctor, and each such check a row", () => {
  const manual = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const table = manual.split("| `doctor` | must | if not |\n")[1]?.split("\n\n")[0] ?? "";
  const rows = table.split("\n").slice(1);
  const cells = rows.map((row) => row.split("|").map((cell) => cell.trim()));
  expect(cells.map(([, name]) => name)).toEqual([...REQUIREMENTS]);
  for (const [, , must, otherwise] of cells) expect([must, otherwise]).not.toContain("");
});

it.each([
  [
    { version: "14.19", number: 140_019, encoding: "UTF8" },
    "is version 14.19 at db, and 15 or newer is needed",
  ],
  [{ version: "9.6.1", number: 90_601, encoding: "UTF8" }, "is version 9.6.1"],
  [{ version: "17.2", number: 170_002, encoding: "LATIN1" }, "the encoding LATIN1"],
  [{}, "is version ?"],
])("a Postgres of %j ends the start", (facts, told) => {
  expect(unfitPostgres(facts, "db")?.message).toContain(told);
});

it("a Postgres of 15 or newer in UTF8 is fit", () => {
  fc.assert(
    fc.property(fc.integer({ min: 150_000, max: 400_000 }), (number) => {
      expect(unfitPostgres({ version: "x", number, encoding: "UTF8" }, "db")).toBeUndefined();
    }),
  );
});

/** What Temporal has; what was added, or why nothing may be. */
async function attributes(known: Record<string, number>, refusal?: string) {
  const [added, warned]: [string[], string[]] = [[], []];
  const operatorService = {
    listSearchAttributes: async () => ({ customAttributes: known }),
    addSearchAttributes: async ({ searchAttributes }: { searchAttributes: object }) => {
      if (refusal !== undefined) throw new Error(refusal);
      added.push(...Object.keys(searchAttributes));
    },
  };
  const logger = { warn: (facts: object, line: string) => warned.push(`${JSON.stringify(facts)} ${line}`) };
  return {
    used: await hasSearchAttributes({ operatorService } as never, "default", logger as never),
    added,
    warned,
  };
}

it("search attributes are used if there or addable, and else left out in the server's words", async () => {
  const all = Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, 2]));
  expect(await attributes(all)).toEqual({ used: true, added: [], warned: [] });
  const { AgentPhase: _, ...most } = all;
  expect(await attributes(most)).toEqual({ used: true, added: ["AgentPhase"], warned: [] });
  const refused = await attributes({}, "7 PERMISSION_DENIED: Request unauthorized.");
  expect(refused.used).toBe(false);
  expect(refused.warned.join()).toContain("Request unauthorized.");
});

it.each([...SEARCH_ATTRIBUTES])(
  "a search attribute %s of another type is not used: every task would fail",
  async (name) => {
    const all = Object.fromEntries(SEARCH_ATTRIBUTES.map((one) => [one, one === name ? 1 : 2]));
    const { used, added, warned } = await attributes(all);
    expect({ used, added }).toEqual({ used: false, added: [] });
    expect(warned.join()).toContain(`${name} there is of another type`);
  },
);
