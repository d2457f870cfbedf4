import { expect, test } from "vitest";
import { describeUse } from "../../../client/setup/up.ts";

test("at most five unfinished tasks are listed", () => {
  const running = ["a", "b", "c", "d", "e", "f", "g"];
  const [line, ...more] = describeUse({ running, others: [] }, { shared: false, all: false });
  expect(line).toContain("Not finished: a, b, c, d, e and 2 more.");
  expect(more).toEqual([]);
});

test("a server that others use is kept, and --all names the installations that it affects", () => {
  const use = {
    running: [],
    others: [
      { queue: "longhaul-1", running: 2 },
      { queue: "longhaul-2", running: 0 },
      { queue: "longhaul-3", running: 0, isUnsure: true },
    ],
  };
  expect(describeUse(use, { shared: true, all: false })).toEqual([
    "Temporal stays up: another installation uses it, longhaul-1 (open tasks: 2), longhaul-2 (a worker, no open task), longhaul-3 (no open task; Temporal does not say whether it has a worker). End it anyway: longhaul down --all",
  ]);
  expect(describeUse(use, { shared: true, all: true })[0]).toContain("also ends for another installation");
});
