/** What people read never holds a statement: its values are the conversation. */
import { DrizzleQueryError } from "drizzle-orm";
import fc from "fast-check";
import { expect, it } from "vitest";
import { innermostReason, reasonOf } from "../../activities/contract/errors.ts";
import { databaseErrorOf } from "../../activities/store/database-error.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { missingServiceOf } from "../../client/connect/missing-service.ts";
import { httpFailure } from "../../client/serve/http.ts";
import { plainReason } from "../../temporal/service-missing.ts";
import { createLogger } from "../../worker/logger.ts";

const STATEMENT = 'select "content" from "stored_messages" where "id" = $1';
const VALUE = "what the person wrote";

/** Errors as the driver, Node and Postgres throw them, with what may be around a query error. */
const causes = fc.constantFrom<unknown>(
  undefined,
  new Error("Connection terminated unexpectedly"),
  Object.assign(new Error("disk full"), { code: "53100" }),
  Object.assign(new Error("permission denied for table sessions"), { code: "42501" }),
  Object.assign(
    new AggregateError([Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })]),
    {
      code: "ECONNREFUSED",
    },
  ),
);
const failed = fc.tuple(causes, fc.nat({ max: 2 })).map(([cause, times]) => {
  let error = new DrizzleQueryError(STATEMENT, [VALUE], cause as Error);
  for (let index = 0; index < times; index += 1) error = new DrizzleQueryError(STATEMENT, [VALUE], error);
  return error;
});

it("whatever a query fails with, no reason tells its statement or its values", () => {
  fc.assert(
    fc.property(failed, (error) => {
      const told = [
        reasonOf(error),
        innermostReason(error),
        innermostReason(new Error("outer", { cause: error })),
        plainReason(error),
        databaseErrorOf(error)?.message,
        missingServiceOf(error)?.message,
        JSON.stringify(httpFailure(error).body),
      ].join("\n");
      expect(told).not.toMatch(/stored_messages|what the person wrote|Failed query|params/);
    }),
  );
});

it("the worker's log tells the reason of a failed query, without its statement and values", () => {
  const lines: string[] = [];
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = ((line: string) => lines.push(line) > 0) as typeof process.stderr.write;
  try {
    const log = createLogger("info", createSanitizer([]));
    const error = new DrizzleQueryError(STATEMENT, [VALUE], new Error("disk full"));
    log.error({ error }, "first");
    log.error({ err: error }, "second");
  } finally {
    process.stderr.write = write;
  }
  expect(lines).toHaveLength(2);
  for (const line of lines) {
    expect(line).toContain("disk full");
    expect(line).not.toMatch(/stored_messages|what the person wrote/);
  }
});
