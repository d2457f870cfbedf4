/** Finds the `temporal` program: on PATH or in our cache; else downloads the release, or builds it with Go. */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { cutChars } from "../../activities/contract/cut-text.ts";
import { childEnvironment } from "./environment.ts";
import { findOnPath, run } from "./processes.ts";
import { type Say, slowly } from "./progress.ts";
import { ServiceMissing } from "../../worker/connect/service-missing.ts";
import { downloadTemporal, TEMPORAL_RELEASE, type Release } from "./temporal-download.ts";
import { innermostReason } from "../../activities/contract/reason-of.ts";

const CLI_VERSION = `v${TEMPORAL_RELEASE.version}`;
const DOWNLOAD_MS = 60_000;
const BUILD_MS = 20 * 60_000;

/** Folder in which clones share downloaded and built programs. */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "longhaul");
}

/** @throws ServiceMissing */
export async function temporalBinary(options: { cache: string; say: Say }): Promise<string> {
  const { cache, say } = options;
  const onPath = findOnPath("temporal");
  if (onPath !== undefined) return onPath;
  const cached = join(cache, `temporal-${CLI_VERSION}`);
  if (existsSync(cached)) return cached;
  mkdirSync(cache, { recursive: true });
  const failures: string[] = [];
  const downloaded = await slowly(
    say,
    "Downloading the Temporal development server (none found on this machine)",
    () => download(cache, failures),
  );
  if (downloaded) return moveInto(downloaded, cached);
  const go = findOnPath("go");
  if (go !== undefined) {
    const built = await slowly(say, "The download failed: building it with Go, once (3 to 8 minutes)", () =>
      build(go, cache, failures),
    );
    if (built) return moveInto(built, cached);
  } else {
    failures.push("Go is not installed");
  }
  throw new ServiceMissing({
    service: "Temporal",
    address: "127.0.0.1:7233",
    problem: "is not running, and no server could be installed",
    reason: failures.join("; "),
    fix: "Install the `temporal` command line tool or Go 1.24, or set TEMPORAL_ADDRESS to a running server.",
  });
}

async function download(cache: string, failures: string[]): Promise<string | undefined> {
  const folder = join(cache, `download-${process.pid}`);
  try {
    return await downloadTemporal(TEMPORAL_RELEASE, folder, AbortSignal.timeout(DOWNLOAD_MS));
  } catch (error) {
    failures.push(`download: ${innermostReason(error)}`);
    return undefined;
  }
}

async function build(go: string, cache: string, failures: string[]): Promise<string | undefined> {
  const folder = join(cache, `build-${process.pid}`);
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
    const { stderr, message } = error as { stderr?: string; message?: string };
    failures.push(`go install: ${lastLine(stderr || message)}`);
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
}

/** @param buildInfo as `go version -m` prints it */
export function hasModule(buildInfo: string, { path, version, sum }: Release["module"]): boolean {
  return buildInfo.split("\n").some((line) => line.trim() === `mod\t${path}\t${version}\t${sum}`);
}

/** Moves the file to `place` and removes its folder. */
function moveInto(file: string, place: string): string {
  renameSync(file, place);
  rmSync(dirname(file), { recursive: true, force: true });
  return place;
}

function lastLine(text: string | undefined): string {
  return cutChars(text?.trim().split("\n").at(-1) ?? "failed", 300);
}
