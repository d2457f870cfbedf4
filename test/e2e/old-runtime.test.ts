/** The real worker, with an engine that reports the runtime version of the test's choice. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { expect, inject, test } from "vitest";
import { workerArgs } from "../support/program.ts";
import { useDatabase } from "../support/test-database.ts";
import { listen } from "../support/listen.ts";

const database = useDatabase();

/** @returns its DOCKER_HOST */
async function engineWith(runc: string): Promise<string> {
  const components = [{ Name: "runc", Version: runc, Details: { GitCommit: `v${runc}` } }];
  const server = createServer((_request, response) =>
    response.end(JSON.stringify({ Version: "28.0.0", ApiVersion: "1.41", Components: components })),
  );
  return `tcp://127.0.0.1:${await listen(server)}`;
}

test("a worker refuses a runc with known escapes unless allowed, with their names and the remedy", async () => {
  const worker = spawn(process.execPath, workerArgs(), {
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: inject("temporalAddress"),
      LONGHAUL_TASK_QUEUE: "old-runtime",
      DOCKER_HOST: await engineWith("1.2.7"),
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [said, [code]] = await Promise.all([text(worker.stderr), once(worker, "exit")]);
  expect(said).toContain("runc 1.2.7");
  expect(said).toContain("CVE-2025-52881");
  expect(said).toContain("LONGHAUL_OLD_RUNC=warn");
  expect(code).toBe(4);
});
