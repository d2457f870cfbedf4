/**
 * Records histories for the replay tests, into test/fixtures/histories.
 *   node scripts/record-history.ts            runs a scripted session for each shape and records them all
 *   node scripts/record-history.ts ID SHAPE   records the newest run of an existing session
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { recordHistory } from "../test/support/history-fixture.ts";
import { temporalConnection } from "../temporal/connection.ts";

const project = fileURLToPath(new URL("..", import.meta.url));

async function recordOne(id: string, shape: string): Promise<number> {
  const { connection: options, namespace } = temporalConnection();
  const connection = await Connection.connect(options);
  try {
    const client = new Client({ connection, namespace });
    process.stdout.write(`${await recordHistory(shape, client.workflow.getHandle(id))}\n`);
    return 0;
  } finally {
    await connection.close();
  }
}

function recordAll(): Promise<number> {
  const vitest = join(project, "node_modules", "vitest", "vitest.mjs");
  const child = spawn(
    process.execPath,
    [vitest, "run", "--config", "vitest.record.config.ts", "histories.record"],
    {
      cwd: project,
      stdio: "inherit",
    },
  );
  return new Promise((resolve) => child.on("close", (code) => resolve(code ?? 1)));
}

const [id, shape] = process.argv.slice(2);
if (id !== undefined && (shape === undefined || !/^[a-z][a-z0-9-]*$/.test(shape))) {
  process.stderr.write("Usage: node scripts/record-history.ts [ID SHAPE]; a shape is in-kebab-case.\n");
  process.exitCode = 2;
} else
  process.exitCode = id === undefined || shape === undefined ? await recordAll() : await recordOne(id, shape);
