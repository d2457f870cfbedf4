import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";

test("is a patch against the uploaded files, which git applies, with binary files too", async () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "a.txt"), "one\ntwo\n");
  const id = await finished(
    "run: sed -i s/two/2/ a.txt; head -c 300 /dev/urandom > data.bin\nsay: Done.",
    "--workspace",
    folder,
  );
  const { code, out, err } = await longhaul(["diff", id]);
  expect(code).toBe(0);
  expect(out).toContain("-two\n+2\n");
  expect(err).toContain("2 files changed");
  execFileSync("git", ["apply", "--check", "-"], { cwd: folder, input: out });
  expect(JSON.parse((await longhaul(["diff", id, "--json"])).out)).toEqual({
    id,
    changed: 2,
    files: [
      { path: "a.txt", added: 1, removed: 1 },
      { path: "data.bin", added: null, removed: null },
    ],
    patch: out,
  });
});

test("in a build the patch gives the runner no command, and git makes the same files of it", async () => {
  const folder = emptyFolder();
  const text = "::group::of the file\n  ::add-mask::x\none\n##vso[task.complete]\nlast\n";
  writeFileSync(join(folder, "log.txt"), text);
  writeFileSync(join(folder, "a.txt"), "one\n");
  const id = await finished(
    "run: sed -i s/one/1/ log.txt a.txt; echo '##[error]no' > new.txt\nsay: Done.",
    "--workspace",
    folder,
  );
  const { code, out, err } = await longhaul(["diff", id], { environment: { GITHUB_ACTIONS: "true" } });
  expect(code).toBe(0);
  expect(out).not.toMatch(/^\s*::|##[a-z]*\[/m);
  expect(out).toContain("-one\n+1\n");
  expect(err).toMatch(/binary form.*log\.txt.*new\.txt.* diff \S+ --json/);
  execFileSync("git", ["apply", "-"], { cwd: folder, input: out });
  const files = ["log.txt", "a.txt", "new.txt"].map((name) => readFileSync(join(folder, name), "utf8"));
  expect(files).toEqual([text.replace("one", "1"), "1\n", "##[error]no\n"]);
});
