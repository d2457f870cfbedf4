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

test("all that a check printed is read by its handle", async () => {
  const order = ["run", "--id", "verify-output", "--verify", "seq 1 30000", "say: Done."];
  expect((await longhaul(order, { cwd: emptyFolder() })).code).toBe(0);
  const whole = JSON.parse((await longhaul(["export", "verify-output"])).out) as {
    verifications: readonly { handle: string; outcome: string }[];
  };
  expect(whole.verifications).toMatchObject([{ outcome: "passed" }]);
  const handle = whole.verifications[0]?.handle ?? "";
  const { out } = await longhaul(["messages", "verify-output", "--output", handle]);
  expect(out.split("\n")).toHaveLength(30_001);
  const { text } = JSON.parse(
    (await longhaul(["messages", "verify-output", "--output", handle, "--json"])).out,
  ) as { readonly text: string };
  expect(text).toBe(out);
  const none = await longhaul(["messages", "verify-output", "--output", "s9c9"]);
  expect(none.code).toBe(5);
  expect(none.err).toContain('has no output with the handle "s9c9"');
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
