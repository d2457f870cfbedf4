/**
 * Ends the run's output with the tests that passed only on the second try, its slowest files, and one machine-readable
 * line: `N passed, N failed`, with `, N skipped` if there are any.
 */
import { writeSync } from "node:fs";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

interface Count {
  passed: number;
  failed: number;
  skipped: number;
}

export class ClosingLine implements Reporter {
  #count: Count = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    // The set-up stops its services after the last report and may print; only on exit is this the last line.
    process.once("exit", (code) => {
      const { failed } = this.#count;
      // A failure outside any test (the set-up, a filter without matches) counts as one.
      writeSync(1, `${closingLine({ ...this.#count, failed: code !== 0 && failed === 0 ? 1 : failed })}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const count: Count = { passed: 0, failed: errors.length, skipped: 0 };
    const flaky: string[] = [];
    for (const module of modules) {
      let failed = 0;
      for (const test of module.children.allTests()) {
        const { state, errors: thrown = [] } = test.result();
        if (test.diagnostic()?.flaky === true)
          flaky.push(`  ${module.relativeModuleId} > ${test.fullName}`, ...thrown.map(firstTry));
        if (state === "failed") failed += 1;
        else if (state === "passed") count.passed += 1;
        else count.skipped += 1;
      }
      // A file that does not load, or whose hooks fail, has no failed test that counts it.
      count.failed += failed === 0 && module.state() === "failed" ? 1 : failed;
    }
    this.#count = count;
    const slowest = slowestFiles(
      modules.map((module) => ({ file: module.relativeModuleId, ms: module.diagnostic().duration })),
    );
    if (flaky.length > 0) writeSync(2, `\nPassed only on the second try:\n${flaky.join("\n")}\n`);
    // Only for a whole run: a run of a few files prints their times anyway.
    if (modules.length > SHOWN_FILES) writeSync(2, `\nSlowest files:\n${slowest.join("\n")}\n`);
  }
}

const SHOWN_FILES = 10;

/** Why the first try failed: a machine that is too busy, or a fault that comes and goes. */
function firstTry({ message, stacks }: SerializedError): string {
  const [at] = stacks ?? [];
  const lineText = at === undefined ? "" : ` (line ${at.line})`;
  return message.replaceAll(/^/gm, "    ").slice(0, MAX_MESSAGE_CHARS) + lineText;
}

/** With a page's text or a log in it, a message is long. */
const MAX_MESSAGE_CHARS = 1_500;

/** A line for each of the ten slowest, slowest first. */
export function slowestFiles(files: readonly { readonly file: string; readonly ms: number }[]): string[] {
  return files
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, SHOWN_FILES)
    .map(({ file, ms }) => `${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}`);
}

export function closingLine({ passed, failed, skipped }: Count): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}
