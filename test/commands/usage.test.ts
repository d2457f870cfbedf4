import { expect, inject, onTestFinished, test } from "vitest";
import { finished, longhaul } from "../support/commands/longhaul.ts";
import { onServer } from "../support/services.ts";

/** As a worker with such a policy stores them when it starts. */
const setBudgets = (url: string, budgets: readonly object[] | null) =>
  onServer(url, async (client) => {
    await client.query("select longhaul_installation()");
    await client.query("update installation set budgets = $1", [budgets && JSON.stringify(budgets)]);
  });

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

test("shows what is left of budgets, to those who may see them", async () => {
  await finished("say: One.");
  const url = inject("commandsEnvironment")["DATABASE_URL"] ?? "";
  const budgets = [
    { per: "person", period: "month", usd: 200 },
    { per: "person", period: "day", usd: 150 },
    { per: "all", period: "month", usd: 1_000 },
  ];
  await setBudgets(url, budgets);
  onTestFinished(() => setBudgets(url, null));
  const { code, out } = await longhaul(["usage"]);
  expect(code).toBe(0);
  const [head = "", ...lines] = out.trimEnd().split("\n");
  expect(head).toMatch(/ COST +BUDGET +LEFT$/);
  expect(lines[0]).toMatch(/ \$150\.00 a day +\$1\d\d\.\d\d$/);
  expect(lines.at(-1)).toMatch(/^all .* \$1000\.00 a month +\$9\d\d\.\d\d$/);
  const json = JSON.parse((await longhaul(["usage", "--json"])).out) as {
    rows: { budgets: object[] }[];
    budgets: object[];
  };
  expect(json.rows[0]?.budgets).toMatchObject([
    { period: "month", usd: 200, reservedUsd: 0, since: expect.stringMatching(/-01$/) as string },
    { period: "day", usd: 150 },
  ]);
  expect(json.budgets).toMatchObject([{ period: "month", usd: 1_000 }]);
  // Parts of what a budget is for, and the past, have nothing left.
  expect((await longhaul(["usage", "--by", "person,model"])).out.split("\n")[1]).toMatch(/ – +–$/);
  expect((await longhaul(["usage", "--since", "2020-01-01", "--until", "2020-01-31"])).out).toBe("");
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
