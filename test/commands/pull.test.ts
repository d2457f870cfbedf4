import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";

test("copies the files out, and overwrites a different one only with --force", async () => {
  const id = await finished("run: mkdir src && echo new > src/a.txt\nsay: Done.");
  const folder = emptyFolder();
  const { code, out, err } = await longhaul(["pull", id, folder]);
  expect({ code, out }).toEqual({ code: 0, out: "" });
  expect(err).toContain("1 file");
  const file = join(folder, "src", "a.txt");
  expect(readFileSync(file, "utf8")).toBe("new\n");
  writeFileSync(file, "mine\n");
  expect((await longhaul(["pull", id, folder])).code).toBe(5);
  expect(readFileSync(file, "utf8")).toBe("mine\n");
  const forced = await longhaul(["pull", id, folder, "--force", "--json"]);
  expect(forced.code).toBe(0);
  expect(JSON.parse(forced.out)).toEqual({ id, folder, files: 1, skipped: [], unsafe: [], untouched: [] });
  expect(readFileSync(file, "utf8")).toBe("new\n");
});
