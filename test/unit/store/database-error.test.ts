import pg from "pg";
import { DrizzleQueryError } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { databaseErrorOf } from "../../../activities/store/database-error.ts";

function fromServer(code: string, message: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError(message, message.length, "error"), { code });
}
const fromNode = (code: string) => Object.assign(new Error(`connect ${code} 127.0.0.1:5432`), { code });

describe("an error of the database", () => {
  it.each([
    fromServer("57P01", "terminating connection due to administrator command"),
    fromServer("53300", "sorry, too many clients already"),
    fromServer("53100", "could not extend file: No space left on device"),
    fromServer("40001", "could not serialize access"),
    fromServer("40P01", "deadlock detected"),
    fromServer("25006", "cannot execute INSERT in a read-only transaction"),
    fromServer("58030", "could not read block"),
    fromServer("XX000", "internal error"),
    fromNode("ECONNREFUSED"),
    fromNode("EAI_AGAIN"),
    new Error("Connection terminated unexpectedly"),
    new Error("timeout exceeded when trying to connect"),
    new Error("Client has encountered a connection error and is not queryable"),
  ])("may pass: %s", { tags: ["R16", "R17", "R24"] }, (error) => {
    expect(databaseErrorOf(error)).toMatchObject({ final: false });
    expect(databaseErrorOf(error)?.message).toContain(error.message);
  });

  it.each([fromServer("22P02", "invalid input syntax"), fromServer("42703", "column does not exist")])(
    "is the same the next time: %s",
    (error) => expect(databaseErrorOf(error)).toMatchObject({ final: true }),
  );

  it("about an unknown table or column may mean old code: the caller checks", () => {
    expect(databaseErrorOf(fromServer("42703", "column does not exist"))?.unknownToSchema).toBe(true);
    expect(databaseErrorOf(fromServer("22P02", "invalid input syntax"))?.unknownToSchema).toBe(false);
  });

  it("is reported without its query and its parameters", { tags: ["invariant-12"] }, () => {
    const error = new DrizzleQueryError("insert … $1", ["the transcript"], fromServer("53100", "disk full"));
    expect(databaseErrorOf(error)).toEqual({
      message: "disk full (53100)",
      final: false,
      unknownToSchema: false,
    });
    expect(databaseErrorOf(new DrizzleQueryError("insert … $1", ["the transcript"]))?.message).toBe(
      "a query failed",
    );
  });

  it("is nothing else", () => {
    for (const error of [new Error("no such tool"), fromNode("ENOENT"), "text", undefined])
      expect(databaseErrorOf(error)).toBeUndefined();
  });
});
