import { expect, test } from "vitest";
import { missingServiceOf } from "../../../client/connect/missing-service.ts";
import { httpFailure } from "../../../client/serve/http.ts";
import { cannotListen } from "../../../client/serve/local-server.ts";

test.each([
  "Connection terminated due to connection timeout",
  "timeout exceeded when trying to connect",
  "Query read timeout",
])("a connection that Postgres' driver lost without a code is a missing service: %s", (words) => {
  const error = new Error("Failed query: select", { cause: new Error(words) });
  expect(missingServiceOf(error)).toMatchObject({ exitCode: 4, message: `A connection was lost: ${words}` });
  expect(httpFailure(error).status).toBe(503);
});

test("an unforeseen error stays as it is", () => {
  const error = new Error("Failed query: select", { cause: new Error("division by zero") });
  expect(missingServiceOf(error)).toBeUndefined();
  expect(httpFailure(error).status).toBe(500);
});

test("a network error is said in words, with the system's code", () => {
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
  const inQuery = new Error("Failed query: select", { cause: refused });
  expect(missingServiceOf(inQuery)?.message).toBe(
    "A connection was lost: nothing listens there, ECONNREFUSED",
  );
  const grpc = Object.assign(new Error("14 UNAVAILABLE: Deadline exceeded"), { code: 14 });
  expect(missingServiceOf(grpc)?.message).toBe("Temporal does not answer: Deadline exceeded");
});

test("a port that another program uses is said in words", () => {
  const error = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" });
  expect(cannotListen(error, "Port 80", "--port").message).toBe(
    "Port 80 cannot be opened: another program uses it.",
  );
});
