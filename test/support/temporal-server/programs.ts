/** Temporal's production server and its schema tool: built once from its Go module. */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment, findOnPath, run } from "../../../client/setup/processes.ts";
import { type Say, slowly } from "../../../client/setup/progress.ts";
import { cacheFolder } from "../../../client/setup/temporal-binary.ts";
import { ServiceMissing } from "../../../temporal/service-missing.ts";
import { reasonOf } from "../../../activities/contract/errors.ts";

/** The version in docker-compose.yml: a unit test compares them. */
export const SERVER_VERSION = "1.32.0";
const MODULE = "go.temporal.io/server";
/** Go names them after their folders. */
const PROGRAMS = { server: "cmd/server", sql: "cmd/tools/sql" } as const;
/** Building took 11 minutes on two shared cores. Source: measured 2026-11. */
const BUILD_MS = 40 * 60_000;

export interface ServerPrograms {
  readonly server: string;
  readonly sql: string;
}

/** Finds them, or builds them. @throws ServiceMissing */
export async function temporalServerPrograms(say: Say): Promise<ServerPrograms> {
  const cache = cacheFolder();
  const folder = join(cache, `temporal-server-v${SERVER_VERSION}`);
  const programs = { server: join(folder, "server"), sql: join(folder, "sql") };
  if (existsSync(folder)) return programs;
  const go = findOnPath("go");
  if (go === undefined) throw missing("Go is not installed");
  mkdirSync(cache, { recursive: true });
  const building = `${folder}.${process.pid}`;
  try {
    await slowly(say, `Building Temporal's server ${SERVER_VERSION} with Go, once (5 to 15 minutes)`, () =>
      run(
        go,
        [
          "install",
          "-trimpath",
          ...Object.values(PROGRAMS).map((path) => `${MODULE}/${path}@v${SERVER_VERSION}`),
        ],
        {
          env: { ...childEnvironment("installer"), GOBIN: building, CGO_ENABLED: "0" },
          timeout: BUILD_MS,
          maxBuffer: 64 * 1024 * 1024,
        },
      ),
    );
    // A concurrent build has made the same.
    if (!existsSync(folder)) renameSync(building, folder);
    return programs;
  } catch (error) {
    throw missing(reasonOf(error), error);
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

function missing(reason: string, cause?: unknown): ServiceMissing {
  return new ServiceMissing({
    service: "Temporal",
    address: `${MODULE}@v${SERVER_VERSION}`,
    problem: "could not be built",
    reason,
    fix: "Install Go, and let it reach a module proxy.",
    cause,
  });
}
