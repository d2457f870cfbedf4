/**
 * Records the trajectory that `npm run bench -- --only policies` replays, into test/fixtures/trajectory.json.gz: a session
 * of 300 steps in a sandbox, with this repository's own commits as its work.
 *   node scripts/record-trajectory.ts         needs git with the whole history, Docker, and the services of the tests
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));
const vitest = join(project, "node_modules", "vitest", "vitest.mjs");
const args = [vitest, "run", "--config", "vitest.record.config.ts", "trajectory.record"];
spawn(process.execPath, args, { cwd: project, stdio: "inherit" }).on("close", (code) => {
  process.exitCode = code ?? 1;
});
