import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Registers what is done at the end: of the test, or of the file where it is `afterAll`. Concurrent tests have their own. */
export type AtEnd = (atEnd: () => Promise<void> | void) => void;

/** A new folder, removed at the end. */
export function emptyFolder(end: AtEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-test-"));
  end(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
