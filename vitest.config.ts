import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/support/closing-line.ts";
import { explainedLabels, tagOfLabel } from "./test/support/labels.ts";

/** One project per kind of test. Only `activities` and the projects after it need services; `unit` needs nothing. */
export default defineConfig({
  test: {
    pool: "forks",
    // As `npx longhaul` does: compiled packages are kept from one process to the next.
    execArgv: ["--import", new URL("scripts/quick-start.mjs", import.meta.url).href],
    // Four on two cores: the eight longest files need 0.3 to 0.6 of a processor each (measured 2026-11); for the rest of
    // their time they wait for a container, a worker or a timeout.
    maxWorkers: 4,
    reporters: ["default", new ClosingLine()],
    // A tag that is not on the page fails its file.
    tags: explainedLabels().map(({ label, meaning }) => ({ name: tagOfLabel(label), description: meaning })),
    projects: [
      // Most of these tests take milliseconds, but much longer on a machine with ten times more work than it can do.
      project("unit", { testTimeout: 60_000 }),
      project("architecture", { testTimeout: 60_000 }),
      project("replay", { testTimeout: 60_000 }),
      project("activities", { testTimeout: 60_000, services: true }),
      // These tests replace Temporal's engine with another one (`direct-loop.ts`), which must not affect the next file.
      project("loop", { testTimeout: 60_000, services: true, ownProcesses: true }),
      project("workflows", { testTimeout: 60_000, services: true }),
      project("commands", {
        testTimeout: 120_000,
        services: true,
        globalSetup: ["./test/support/commands/global-setup.ts"],
      }),
      project("e2e", { testTimeout: 300_000, services: true }),
      project("faults", { testTimeout: 300_000, services: true }),
      // They install or build hundreds of megabytes of other projects, so they run only where they are named.
      ...["wires", "real-model", "forge", "stores"]
        .filter(isNamed)
        .map((name) => project(name, { testTimeout: 900_000, services: true, ownProcesses: true })),
    ],
  },
});

/** By an argument, or with all others: LONGHAUL_TEST_ALSO has further projects' names, with commas between them. */
function isNamed(name: string): boolean {
  const also = process.env["LONGHAUL_TEST_ALSO"]?.split(",") ?? [];
  return (
    also.includes(name) || process.argv.some((argument) => [name, `--project=${name}`].includes(argument))
  );
}

interface ProjectOptions {
  readonly testTimeout: number;
  /** Brings up Postgres, Temporal and Docker first. */
  readonly services?: boolean;
  /** Runs after the services are up. */
  readonly globalSetup?: readonly string[];
  /**
   * A fresh process for each file. Elsewhere files follow each other in one: loading the agent again takes 2 s of a
   * processor, more than most files' tests (measured 2026-11: 115 and 59 s for `unit`, 80 and 66 s for six files of e2e).
   */
  readonly ownProcesses?: boolean;
}

function project(name: string, options: ProjectOptions) {
  return {
    extends: true as const,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      setupFiles: ["./test/support/seed.ts"],
      testTimeout: options.testTimeout,
      hookTimeout: options.testTimeout,
      teardownTimeout: 30_000,
      isolate: options.ownProcesses === true,
      ...(options.services === true
        ? { globalSetup: ["./test/support/global-setup.ts", ...(options.globalSetup ?? [])] }
        : {}),
    },
  };
}
