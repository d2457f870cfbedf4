/** The bound that each session of a schedule has without any setting. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { RunConfig } from "../../../activities/config/agent-config.ts";
import { resolveConfig } from "../../../client/config/config.ts";
import { limitsText, readLimits, withBound } from "../../../client/schedules/schedule-bound.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { configOf } from "../../support/run-config.ts";

const price = { input: 1, cached: 0.1, output: 2 };
const run = ({ limits, ...more }: { readonly limits?: object; readonly [name: string]: unknown } = {}) => {
  const config = configOf({});
  return { ...config, price, ...more, limits: { ...config.limits, maxSteps: 500, ...limits } } as RunConfig;
};
const boundOf = (config: RunConfig, isStepsChosen = false) => {
  const bound = withBound(config, isStepsChosen);
  return { ...readLimits(bound.config), said: bound.said };
};

describe("a schedule's sessions", () => {
  it("may cost 10 USD where the price is known", () => {
    expect(boundOf(run())).toEqual({
      maxCostUsd: 10,
      maxSteps: 500,
      said: "Each of its sessions may cost at most $10.00; --max-cost sets another limit.",
    });
  });

  it("keep the limit of cost that a person has set", () => {
    expect(boundOf(run({ limits: { maxCostUsd: 2.5 } }))).toMatchObject({
      maxCostUsd: 2.5,
      said: expect.stringContaining("at most $2.50;") as string,
    });
  });

  it("make 100 steps where no price is known, fewer or more if a person has set that", () => {
    const unpriced = (more = {}) => run({ price: undefined, ...more });
    expect(boundOf(unpriced())).toMatchObject({ maxCostUsd: null, maxSteps: 100 });
    expect(boundOf(unpriced({ limits: { maxSteps: 30 } }), true)).toMatchObject({ maxSteps: 30 });
    expect(boundOf(unpriced({ limits: { maxSteps: 400 } }), true)).toMatchObject({
      maxSteps: 400,
      said: expect.stringMatching(/^The price of \S+ is not known, .* at most 400 steps;/) as string,
    });
  });

  const other = (own?: object) => ({ ...configOf({}), model: "local/other", price: own });
  it.each([
    ["a fallback", { fallback: [other(price), other()] }],
    ["the summaries' model", { summariser: other() }],
    ["the delegates' model", { delegate: { ...configOf({}).delegate, target: other() } }],
    ["the service tier", { tier: "fast" }],
  ])("are held to steps if the price of %s is not known", (_, more) => {
    expect(boundOf(run(more))).toMatchObject({ maxCostUsd: null, maxSteps: 100 });
  });

  it("may cost 10 USD where all prices are known", () => {
    expect(boundOf(run({ fallback: [other(price)], summariser: other(price) }))).toMatchObject({
      maxCostUsd: 10,
    });
  });
});

describe("whether a limit of steps was chosen", () => {
  it.each([
    ["nothing is set", undefined, {}, false],
    ["a flag is set, even to the default", undefined, { maxSteps: 500 }, true],
    ["a file sets it", "limits: {maxSteps: 300}\n", {}, true],
  ])("is known: %s", (_, file, flags, isChosen) => {
    const folder = emptyFolder();
    if (file !== undefined) writeFileSync(join(folder, "mine.yaml"), file);
    const config = file === undefined ? undefined : "mine.yaml";
    expect(resolveConfig({ ...flags, config }, {}, folder).isStepsChosen).toBe(isChosen);
  });
});

it.each([
  [{ limits: { maxCostUsd: 10, maxSteps: 500 } }, "at most $10.00 and 500 steps each"],
  [{ limits: { maxSteps: 100 } }, "at most 100 steps each"],
  [{}, false],
  [undefined, false],
])("the list shows %j", (config, text) => {
  expect(limitsText(readLimits(config))).toBe(text);
});
