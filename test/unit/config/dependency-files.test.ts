import { expect, test } from "vitest";
import { isDependencyFile } from "../../../activities/config/dependency-files.ts";

test.each([
  ["package.json", true],
  ["packages/a/package-lock.json", true],
  ["requirements-dev.txt", true],
  ["app/build.gradle.kts", true],
  ["src/package.json.ts", false],
  ["docs/requirements.md", false],
  ["package", false],
  ["tools/install.sh", true],
  ["tools/other.sh", false],
])("a set-up depends on %s: %s", (path, depends) => {
  expect(isDependencyFile(path, ["bash ./tools/install.sh", "npm ci"])).toBe(depends);
});
