/** `--verify`: what the exit code, `status` and `list` say of it. */
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { emptyFolder, longhaul } from "../support/commands/longhaul.ts";

test.each([
  ["test -f good", 0, "passed", "✓"],
  ["test -f bad", 9, "failed", "✗"],
  ["no-such-program", 9, "unavailable", "?"],
])("%j ends with %i: %s", async (command, code, outcome, mark) => {
  const task = "run: echo 1 > good\nsay: Done.";
  const id = `verify-${outcome}`;
  const order = ["run", "--id", id, "--verify", command, task];
  const ended = await longhaul(order, { cwd: emptyFolder() });
  expect(ended.code, ended.err).toBe(code);
  expect(ended.out).toBe("Done.\n");
  expect(ended.err).toContain(command);
  const status = await longhaul(["status", id, "--json"]);
  expect(JSON.parse(status.out)).toMatchObject({ status: "completed", verified: outcome });
  expect((await longhaul(["status", id])).out).toContain(`${mark} `);
  const { out: list } = await longhaul(["list", "--limit", "1000"]);
  expect(list.split("\n").find((line) => line.startsWith(id))).toContain(`completed ${mark}`);
});

test("a longhaul.yaml in the current folder may not set it: it may have come with a clone", async () => {
  const cwd = emptyFolder();
  writeFileSync(`${cwd}/longhaul.yaml`, 'verify:\n  commands: ["true"]\n');
  const { code, err } = await longhaul(["run", "say: Done."], { cwd });
  expect(code).toBe(2);
  expect(err).toContain("verify");
});

test("protected files need a repository to compare with", async () => {
  const cwd = emptyFolder();
  writeFileSync(`${cwd}/own.yaml`, 'verify:\n  commands: ["true"]\n  protect: [test/**]\n');
  const { code, err } = await longhaul(["run", "--config", "own.yaml", "say: Done."], { cwd });
  expect(code).toBe(2);
  expect(err).toContain("verify.protect is about a repository's files");
});
