import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
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
