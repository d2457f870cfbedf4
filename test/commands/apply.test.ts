import { expect, test } from "vitest";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gitIn } from "../support/remotes.ts";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";

test("applies the change on a new branch of the checkout; push and pr need a repository", async () => {
  const cwd = emptyFolder();
  gitIn(cwd, "init", "-q", "-b", "main");
  gitIn(cwd, "config", "user.name", "Ada");
  gitIn(cwd, "config", "user.email", "ada@example.org");
  writeFileSync(join(cwd, "a.txt"), "one\n");
  gitIn(cwd, "add", "-A");
  gitIn(cwd, "commit", "-q", "-m", "Begin");
  const id = await finished("run: echo two > a.txt; echo new > b.txt\nsay: Done.", "--workspace", cwd);
  expect(await longhaul(["apply", id], { cwd })).toMatchObject({ code: 0, out: `longhaul/${id}\n` });
  expect(gitIn(cwd, "diff", "--name-status", "main", "HEAD")).toBe("M\ta.txt\nA\tb.txt");
  expect(gitIn(cwd, "log", "-1", "--format=%(trailers)")).toBe(`Longhaul-Session: ${id}`);
  expect((await longhaul(["apply", id], { cwd })).code).toBe(5);
  const push = await longhaul(["push", id]);
  expect(push).toMatchObject({ code: 5, out: "" });
  expect(push.err).toContain(` apply ${id}`);
});
