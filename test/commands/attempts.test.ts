/** `--attempts`: several sessions on one task, of which commands choose the best. */
import { expect, test } from "vitest";
import type { BatchDocument } from "../../client/batch/batch-document.ts";
import { emptyFolder, longhaul } from "../support/commands/longhaul.ts";
import { gitIn, makeRemote } from "../support/remotes.ts";

const parsed = (out: string) => JSON.parse(out) as BatchDocument;

const VERIFY = ["--verify", "test -f good"];

test("delivers the best of them, and names the others", { timeout: 240_000 }, async () => {
  const place = makeRemote({ "README.md": "# Here\n" });
  const task = "run: echo 1 > good\nsay: Good.";
  const order = ["run", "--attempts", "3", "--id", "best-of", "--repo", place.url, "--push", "end"];
  const first = await longhaul([...order, ...VERIFY, task], { cwd: emptyFolder() });
  expect(first.code, first.err).toBe(0);
  expect(first.out).toBe("Good.\n");
  expect(first.err).toMatch(/chosen: attempt 1 \(best-of-1\): /);
  expect(gitIn(place.folder, "branch", "--list", "longhaul/*")).toBe("longhaul/best-of-1");
  expect(gitIn(place.folder, "show", "longhaul/best-of-1:good")).toBe("1");
  const again = await longhaul([...order, "--json", ...VERIFY, task], { cwd: emptyFolder() });
  expect(again.code, again.err).toBe(0);
  expect(again.err).toContain("attached to");
  expect(parsed(again.out)).toMatchObject({
    status: "completed",
    total: 3,
    completed: 3,
    chosen: { sessionId: "best-of-1", outcome: "passed", changedLines: 1 },
  });
});

test("ends with 9 if none passed, and delivers nothing if it is held", { timeout: 240_000 }, async () => {
  const order = ["run", "--attempts", "2", "--json", ...VERIFY, "say: Done."];
  const { code, out, err } = await longhaul(order);
  expect(code, err).toBe(9);
  expect(parsed(out)).toMatchObject({ status: "failed", chosen: { outcome: "failed", isUnverified: true } });
});

test("with --max-cost they run one after the other, and what is left decides", async () => {
  const order = ["run", "--attempts", "2", "--max-cost", "0.000001", "--json", ...VERIFY];
  const { code, out } = await longhaul([...order, "run: touch good\nrun: true\nsay: Over."]);
  expect(code).toBe(3);
  expect(parsed(out).items.map(({ status }) => status)).toEqual(["max_steps", "pending"]);
});

test("with --first the first that passes ends the others", { timeout: 240_000 }, async () => {
  const order = ["run", "--attempts", "2", "--first", "--json", "--max-cost", "5", ...VERIFY];
  const { code, out, err } = await longhaul([...order, "run: touch good\nsay: Mine."]);
  expect(code, err).toBe(0);
  const { items, chosen } = parsed(out);
  expect(items.map(({ status }) => status)).toEqual(["completed", "pending"]);
  expect(chosen?.number).toBe(1);
});

test.each([
  [["--attempts", "3"], /chooses by what commands say/],
  [["--attempts", "1", ...VERIFY], /expected 2 to 20, not 1/],
  [["--first", ...VERIFY], /--first is about --attempts/],
  [["--attempts", "2", "--id", "of/no/use", ...VERIFY], /cannot be a batch's name/],
])("%j is refused, and nothing starts", async (flags, why) => {
  const { code, err } = await longhaul(["run", ...flags, "say: Done."]);
  expect(code).toBe(2);
  expect(err).toMatch(why);
});
