import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/support/closing-line.ts";

/** One project per kind of test. Only `activities` and those after it need services; `vitest --project unit` runs with nothing there. */
export default defineConfig({
  test: {
    pool: "forks",
    // Two at a time is what two cores take; the services share them.
    maxWorkers: 2,
    reporters: ["default", new ClosingLine()],
    projects: [
      project("unit", { testTimeout: 10_000 }),
      project("architecture", { testTimeout: 60_000 }),
      project("replay", { testTimeout: 60_000 }),
      project("activities", { testTimeout: 60_000, services: true }),
      project("workflows", { testTimeout: 60_000, services: true }),
      project("commands", {
        testTimeout: 120_000,
        services: true,
        globalSetup: ["./test/support/commands/global-setup.ts"],
      }),
      project("e2e", { testTimeout: 300_000, services: true }),
      project("faults", { testTimeout: 300_000, services: true }),
      // Installs hundreds of megabytes of another project, so it runs only where it is named.
      ...(process.argv.some((argument) => /^(--project=)?wires$/.test(argument))
        ? [project("wires", { testTimeout: 900_000, services: true })]
        : []),
    ],
  },
});

interface ProjectOptions {
  readonly testTimeout: number;
  /** Brings up Postgres, Temporal and Docker first. */
  readonly services?: boolean;
  /** Runs after the services are up. */
  readonly globalSetup?: readonly string[];
}

function project(name: string, options: ProjectOptions) {
  return {
    extends: true as const,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      testTimeout: options.testTimeout,
      hookTimeout: options.testTimeout,
      teardownTimeout: 30_000,
      ...(options.services === true
        ? {
            // A second try tells a fault from a machine that is too busy; the closing report names every test that took one.
            retry: 1,
            globalSetup: ["./test/support/global-setup.ts", ...(options.globalSetup ?? [])],
          }
        : {}),
    },
  };
}
