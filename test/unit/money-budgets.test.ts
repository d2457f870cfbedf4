/** Which budgets apply to whom, and when their periods begin. */
import { describe, expect, it } from "vitest";
import { budgetsFor, budgetsSchema, toPeriod } from "../../activities/config/money-budgets.ts";
import { operatorPolicySchema } from "../../activities/config/operator-policy.ts";

const ANN = { person: "ann", tenant: "acme", repo: "forge.example/acme/app" };
const scopes = (budgets: object[], spender = ANN) =>
  budgetsFor(budgetsSchema.parse(budgets), spender, "2026-11-27").map(({ scope, limitUsd }) => [
    scope,
    limitUsd,
  ]);

describe("budgets that apply", () => {
  it("are all that match, and a more precise one replaces the general one of its kind", () => {
    expect(
      scopes([
        { per: "person", period: "month", usd: 200 },
        { per: "person", of: "ann", period: "month", usd: 500 },
        { per: "person", of: "bob", period: "month", usd: 5 },
        { per: "person", period: "day", usd: 20 },
        { per: "tenant", period: "month", usd: 2_000 },
        { per: "repo", of: "forge.example/acme/app", period: "week", usd: 100 },
        { per: "repo", of: "forge.example/acme/other", period: "week", usd: 1 },
        { per: "all", period: "day", usd: 300 },
      ]),
    ).toEqual([
      ["person ann, month", 500],
      ["person ann, day", 20],
      ["tenant acme, month", 2_000],
      ["repo forge.example/acme/app, week", 100],
      ["all, day", 300],
    ]);
  });

  it("count people without a name as one, and are none of a tenant that is not there", () => {
    const kinds = ["person", "tenant", "repo"].map((per) => ({ per, period: "day", usd: 1 }));
    expect(scopes(kinds, { person: "", tenant: "", repo: "" })).toEqual([["people without a name, day", 1]]);
  });
});

it.each([
  "https://Forge.example/Acme/App.git",
  "ssh://git@forge.example/acme/app/",
  "forge.example/acme/app",
])("a budget is for the repository that its address names: %s", (of) => {
  expect(scopes([{ per: "repo", of, period: "day", usd: 1 }])).toEqual([
    ["repo forge.example/acme/app, day", 1],
  ]);
});

describe("a period", () => {
  it.each([
    ["day", "2026-12-31", "2026-12-31", "2027-01-01"],
    ["week", "2026-11-27", "2026-11-23", "2026-11-30"],
    ["week", "2026-11-29", "2026-11-23", "2026-11-30"],
    ["week", "2026-11-30", "2026-11-30", "2026-12-07"],
    ["month", "2026-12-01", "2026-12-01", "2027-01-01"],
    ["month", "2028-02-29", "2028-02-01", "2028-03-01"],
  ] as const)("of a %s that has %s begins on %s and ends before %s", (period, today, since, before) => {
    expect(toPeriod(period, today)).toEqual({ since, before });
  });
});

it.each([
  [{ budgets: [{ per: "planet", period: "day", usd: 1 }] }, "budgets"],
  [{ budgets: [{ per: "all", of: "x", period: "day", usd: 1 }] }, "of"],
  [{ budgets: [{ per: "repo", of: "app", period: "day", usd: 1 }] }, "of"],
  [{ budgets: [{ per: "all", period: "day", usd: -1 }] }, "usd"],
  [{ budgetZone: "Middle/Earth" }, "budgetZone"],
])("the policy refuses %j", (policy, name) => {
  const parsed = operatorPolicySchema.safeParse(policy);
  expect(parsed.error?.issues[0]?.path.join(".")).toContain(name);
});
