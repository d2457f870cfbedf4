import { expect, test } from "vitest";
import { z } from "zod";
import { namedIssueText } from "../../../client/console/issue-text.ts";
import { parse } from "../../../client/serve/http.ts";
import { checked } from "../../../client/sessions/flag-values.ts";

const schema = z.strictObject({
  count: z.number().int().min(1).max(5).optional(),
  share: z.number().positive().optional(),
  name: z.string().min(2).optional(),
  kind: z.enum(["a", "b", "c"]).optional(),
  own: z.string().regex(/x/, "must contain an x").optional(),
});

const textOf = (value: unknown): string =>
  schema.safeParse(value).error?.issues.map(namedIssueText).join("; ") ?? "none";

test.each([
  [{ count: 9 }, "count: expected at most 5"],
  [{ count: 0 }, "count: expected at least 1"],
  [{ count: 1.5 }, "count: expected a whole number"],
  [{ count: "1" }, "count: expected a number, not text"],
  [{ share: 0 }, "share: expected more than 0"],
  [{ name: "x" }, "name: expected at least 2 characters"],
  [{ kind: "d" }, "kind: expected a, b or c"],
  [{ own: "y" }, "own: must contain an x"],
  [[], "expected a group of settings, not a list"],
])("a value that a schema refuses is described without the library's wording: %j", (value, text) => {
  expect(textOf(value)).toBe(text);
});

test("flags and the API describe it in the same words", () => {
  expect(() => checked(z.number().max(5), Number)("9")).toThrow("Expected at most 5.");
  expect(() => parse(schema, { count: 9, kind: "d" })).toThrow(
    "count: expected at most 5; kind: expected a, b or c.",
  );
});
