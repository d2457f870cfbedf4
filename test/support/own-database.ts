/** A database of a test's own on the tests' server, and statements in it as the superuser. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { createDatabase, dropDatabase } from "./services.ts";

/** Runs statements as the superuser. */
export async function asOwner(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Dropped after the test. @param template default: an empty database */
export async function ownDatabase(
  prefix: string,
  template?: string,
): Promise<{ readonly name: string; readonly url: string }> {
  const server = inject("databaseServer");
  const name = `${prefix}_${randomBytes(6).toString("hex")}`;
  const url = await createDatabase(server, name, template);
  onTestFinished(() => dropDatabase(server, name));
  return { name, url };
}
