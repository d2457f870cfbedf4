import { expect, test } from "vitest";
import { finished, longhaul } from "../support/commands/longhaul.ts";

test("shows what was used this month, as a table and as JSON", async () => {
  await finished("say: One.");
  const { code, out } = await longhaul(["usage", "--by", "person, model"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^PERSON +MODEL +SESSIONS +CALLS +IN +CACHED +OUT +COST\n/);
  const json = await longhaul(["usage", "--by", "model", "--since", "2026-01-01", "--json"]);
  const { by, rows } = JSON.parse(json.out) as { by: string[]; rows: { model: string; calls: number }[] };
  expect(by).toEqual(["model"]);
  expect(rows[0]?.calls).toBeGreaterThan(0);
  expect(await longhaul(["usage", "--since", "2001-01-01", "--until", "2001-01-31"])).toMatchObject({
    code: 0,
    out: "",
    err: expect.stringContaining("No model was asked from 2001-01-01 to 2001-01-31") as string,
  });
});

test.each([
  [["--since", "yesterday"], "--since yesterday is no day"],
  [["--since", "2026-02-30"], "--since 2026-02-30 is no day"],
  [["--since", "2026-03-02", "--until", "2026-03-01"], "before it begins"],
  [["--by", "planet"], "--by planet is not something"],
])("refuses %j", async (flags, message) => {
  const { code, err } = await longhaul(["usage", ...flags]);
  expect(code).toBe(2);
  expect(err).toContain(message);
});
