/** Temporal's server as a company runs it, and the tool that makes its tables: built once from its Go module. */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment } from "../../../client/setup/environment.ts";
import { findOnPath, run } from "../../../client/setup/processes.ts";
import { type Say, slowly } from "../../../client/setup/progress.ts";
import { cacheFolder } from "../../../client/setup/temporal-binary.ts";
import { ServiceMissing } from "../../../worker/connect/service-missing.ts";
import { reasonOf } from "../../../activities/contract/reason-of.ts";

/** Of the server's image in docker-compose.yml too: a unit test compares them. */
export const SERVER_VERSION = "1.32.0";
const MODULE = "go.temporal.io/server";
/** Named by Go after their folders. */
const PROGRAMS = { server: "cmd/server", sql: "cmd/tools/sql" } as const;
/** Two cores that others use too took 11 minutes. Source: measured 2026-11. */
const BUILD_MS = 40 * 60_000;

export interface ServerPrograms {
  readonly server: string;
  readonly sql: string;
}

/** Where they are; builds them where they are not. @throws ServiceMissing */
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
    // Another that built it meanwhile has the same.
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
