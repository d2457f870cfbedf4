import { expect, test } from "vitest";
import { commitMessage } from "../../../client/workspace/apply-on-branch.ts";

const subjectOf = (task: string) => commitMessage(task, "s").split("\n", 1)[0];
const LONG =
  "Fix the parser of the configuration so that it names the line and the column of an unknown key, and test it";

test("a short task is the subject, with the session as trailer", () => {
  expect(commitMessage("Fix the parser.\n", "calm-owl-1")).toBe(
    "Fix the parser\n\nLonghaul-Session: calm-owl-1\n",
  );
});

test("a subject fits into the log, and the body has the whole task", () => {
  expect(commitMessage(LONG, "s")).toBe(
    `Fix the parser of the configuration so that it names the line and the…\n\n${LONG}\n\nLonghaul-Session: s\n`,
  );
  expect(subjectOf(`Fix the parser of v1.2. ${LONG}`)).toBe("Fix the parser of v1.2");
  expect(subjectOf(`Fix e.g. the parser. ${LONG}`)).toBe("Fix e.g. the parser");
  expect(subjectOf("# Fix the parser\n\nIt fails on tabs.")).toBe("Fix the parser");
  expect(subjectOf("x".repeat(100))).toBe(`${"x".repeat(71)}…`);
  expect(commitMessage("word ".repeat(5_000), "s").length).toBeLessThan(4_200);
});
