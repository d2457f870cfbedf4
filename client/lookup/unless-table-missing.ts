/** Queries on a database that may be new. */

/** @returns undefined if the database has no tables, because no worker has used it yet */
export async function unlessTableMissing<T>(query: () => Promise<T>): Promise<T | undefined> {
  try {
    return await query();
  } catch (error) {
    if (isMissingTable(error)) return undefined;
    throw error;
  }
}

/** Postgres' code for an unknown table or column. */
export function isMissingTable(error: unknown): boolean {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    const code = (inner as { code?: unknown }).code;
    if (code === "42P01" || code === "42703") return true;
  }
  return false;
}
