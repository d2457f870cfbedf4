/** A real object store with Amazon's S3 interface: versitygw on a folder of its own, built once from its Go module. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openObjectStore, type ObjectStore } from "../../activities/store/object-store.ts";
import { childEnvironment, findOnPath, freePort, run } from "../../client/setup/processes.ts";
import { cacheFolder } from "../../client/setup/temporal-binary.ts";
import { ownProcess } from "./own-process.ts";

const VERSION = "1.8.0";
const MODULE = `github.com/versity/versitygw/cmd/versitygw@v${VERSION}`;
/** It took 250 s on two busy cores. Source: measured 2026-11. */
const BUILD_MS = 30 * 60_000;
const START_MS = 60_000;
const BUCKET = "saves";

/** Of its only account. */
const CREDENTIALS = {
  AWS_ACCESS_KEY_ID: "longhaul-test",
  AWS_SECRET_ACCESS_KEY: "longhaul-test-secret",
  // Nothing of this machine's own.
  AWS_CONFIG_FILE: "/dev/null",
  AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
  AWS_EC2_METADATA_DISABLED: "true",
};

export interface S3Gateway {
  /** For LONGHAUL_STORE. */
  readonly address: string;
  /** Variables of a process that uses it. */
  readonly environment: Readonly<Record<string, string>>;
  /** In this process, with its credentials. */
  readonly objects: ObjectStore;
  /** Names of the objects that it has. */
  keys(): string[];
  close(): Promise<void>;
}

/** @throws Error if Go is missing, or it cannot be built */
export async function startS3Gateway(): Promise<S3Gateway> {
  const program = await gatewayProgram();
  const home = mkdtempSync(join(tmpdir(), "longhaul-s3-"));
  mkdirSync(join(home, BUCKET));
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret } = CREDENTIALS;
  const server = ownProcess(
    "versitygw",
    {
      command: program,
      args: ["--port", `127.0.0.1:${port}`, "--access", access, "--secret", secret, "posix", home],
      log: join(home, "versitygw.log"),
      env: childEnvironment("service"),
      cwd: home,
    },
    async () => void (await fetch(endpoint)),
    START_MS,
  );
  await server.start();
  const address = `s3://${BUCKET}/here?endpoint=${endpoint}`;
  Object.assign(process.env, CREDENTIALS);
  return {
    address,
    environment: { LONGHAUL_STORE: address, ...CREDENTIALS },
    objects: openObjectStore(address),
    keys: (): string[] => {
      const folder = join(home, BUCKET, "here");
      return existsSync(folder) ? readdirSync(folder) : [];
    },
    close: async () => {
      await server.stop();
      for (const name of Object.keys(CREDENTIALS)) delete process.env[name];
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function gatewayProgram(): Promise<string> {
  const program = join(cacheFolder(), `versitygw-${VERSION}`);
  if (existsSync(program)) return program;
  const go = findOnPath("go");
  if (go === undefined) throw new Error("Go is needed to build versitygw, and is not installed.");
  const folder = `${program}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  try {
    const env = { ...childEnvironment("installer"), GOBIN: folder };
    await run(go, ["install", MODULE], { cwd: folder, env, timeout: BUILD_MS });
    // A concurrent build has made the same.
    if (!existsSync(program)) renameSync(join(folder, "versitygw"), program);
    return program;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
