import { expect, test } from "vitest";
import { missingServiceOf } from "../../../client/connect/missing-service.ts";
import { failureOf } from "../../../client/serve/http.ts";

test.each([
  "Connection terminated due to connection timeout",
  "timeout exceeded when trying to connect",
  "Query read timeout",
])("a connection that Postgres' driver lost without a code is a missing service: %s", (words) => {
  const error = new Error("Failed query: select", { cause: new Error(words) });
  expect(missingServiceOf(error)).toMatchObject({ exitCode: 4, message: `A connection was lost: ${words}` });
  expect(failureOf(error).status).toBe(503);
});

test("an unforeseen error stays as it is", () => {
  const error = new Error("Failed query: select", { cause: new Error("division by zero") });
  expect(missingServiceOf(error)).toBeUndefined();
  expect(failureOf(error).status).toBe(500);
});
