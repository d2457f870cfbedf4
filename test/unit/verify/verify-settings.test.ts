/** Patterns of protected files: one that Git would match nothing by protects nothing, so it is mended or refused. */
import { expect, it } from "vitest";
import { verifySchema } from "../../../activities/config/verify-settings.ts";

const withPatterns = (...protect: string[]) => verifySchema.safeParse({ commands: ["npm test"], protect });

it.each([
  ["/test/**", "test/**"],
  ["./test/**", "test/**"],
  ["//package.json", "package.json"],
  [".github/**", ".github/**"],
  ["test/", "test/"],
  ["**/conftest.py", "**/conftest.py"],
  ["a..b/...", "a..b/..."],
])("%j is %j from the top of the repository", (pattern, protectedPattern) => {
  expect(withPatterns(pattern).data?.protect).toEqual([protectedPattern]);
  // Settings are stored and read again.
  expect(withPatterns(protectedPattern).data?.protect).toEqual([protectedPattern]);
});

it.each(["", "/", "../x", "test/../x", "test//x", "a/./b", "..", "!test/**", "a\0b"])(
  "%j is refused by its place",
  (pattern) => {
    const { error } = withPatterns("package.json", pattern);
    expect(error?.issues).toMatchObject([{ path: ["protect", 1] }]);
  },
);

it("needs files to restore", () => {
  const { error } = verifySchema.safeParse({ commands: ["npm test"], onProtected: "restore" });
  expect(error?.issues).toMatchObject([{ path: ["protect"] }]);
});
