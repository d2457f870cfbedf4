/** Where the `temporal` program is: PATH, our cache, the SDK's own download, or built by Go. */
import { accessSync, constants, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { run } from "./processes.ts";
import { type Say, slowly } from "./progress.ts";
import { ServiceMissing } from "./service-missing.ts";

/** Known to build with `go install`; 1.9.1 does not (its go.mod has replace lines). */
const CLI_VERSION = "v1.5.1";
const DOWNLOAD_MS = 60_000;
const BUILD_MS = 20 * 60_000;

/** Where fetched and built programs are kept over clones. */
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
    "Fetching the Temporal development server (none on this machine)",
    () => download(cache, failures),
  );
  if (downloaded) return moveInto(downloaded, cached);
  const go = findOnPath("go");
  if (go !== undefined) {
    const built = await slowly(
      say,
      "It could not be fetched: building it with Go, once (3 to 8 minutes)",
      () => build(go, cache, failures),
    );
    if (built) return moveInto(built, cached);
  } else {
    failures.push("Go is not installed");
  }
  throw new ServiceMissing({
    service: "Temporal",
    address: "127.0.0.1:7233",
    reason: failures.join("; "),
    mend: "Install the `temporal` command line tool or Go 1.24, or set TEMPORAL_ADDRESS to a server that runs.",
  });
}

export function findOnPath(name: string): string | undefined {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** The SDK downloads with no bound of its own and cannot be told to stop, so it is a process that we can end. */
async function download(cache: string, failures: string[]): Promise<string | undefined> {
  const folder = join(cache, `download-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  const script = new URL("./temporal-download.ts", import.meta.url).pathname;
  try {
    const { stdout } = await run(process.execPath, [script, folder], { timeout: DOWNLOAD_MS });
    return stdout.trim();
  } catch (error) {
    const { stderr, killed } = error as { stderr?: string; killed?: boolean };
    failures.push(killed ? `no download in ${DOWNLOAD_MS / 1_000} s` : `download: ${lastLine(stderr)}`);
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
}

async function build(go: string, cache: string, failures: string[]): Promise<string | undefined> {
  const folder = join(cache, `build-${process.pid}`);
  try {
    await run(go, ["install", `github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}`], {
      env: { ...process.env, GOBIN: folder },
      timeout: BUILD_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    return join(folder, "temporal");
  } catch (error) {
    failures.push(`go install: ${lastLine((error as { stderr?: string }).stderr)}`);
    rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
}

function moveInto(file: string, place: string): string {
  renameSync(file, place);
  return place;
}

function lastLine(text: string | undefined): string {
  return text?.trim().split("\n").at(-1)?.slice(0, 300) ?? "failed";
}
