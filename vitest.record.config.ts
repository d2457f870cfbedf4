import { defineConfig } from "vitest/config";

/** Runs sessions to record their histories: `node scripts/record-history.ts`. */
export default defineConfig({
  test: {
    pool: "forks",
    maxWorkers: 1,
    // The name says which services it needs (test/support/global-setup.ts).
    name: "e2e",
    include: ["test/replay/histories.record.ts"],
    globalSetup: ["./test/support/global-setup.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
