/** A real proxy of other people between us and the strict server: LiteLLM from PyPI, in a folder of its own. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findOnPath, freePort, run } from "../../client/setup/processes.ts";
import { cacheFolder } from "../../client/setup/temporal-binary.ts";
import { ownProcess } from "../support/own-process.ts";

const VERSION = "1.106.2";
/** Its hundred packages took 157 s on two busy cores. */
const INSTALL_MS = 15 * 60_000;
/** It imports for 33 s on two busy cores. */
const START_MS = 5 * 60_000;

export type Installed =
  | { readonly ok: true; readonly program: string }
  | { readonly ok: false; readonly why: string };

/** Installs it once: later runs find it. */
export async function installLiteLlm(): Promise<Installed> {
  const folder = join(cacheFolder(), `litellm-${VERSION}`);
  const program = join(folder, "bin", "litellm");
  // Written last, so that an install that was cut off is done again.
  const done = join(folder, "installed");
  if (existsSync(done)) return { ok: true, program };
  const python = findOnPath("python3");
  if (python === undefined) return { ok: false, why: "there is no python3 on PATH" };
  const options = { env: process.env, timeout: INSTALL_MS, maxBuffer: 64 * 1024 * 1024 };
  try {
    rmSync(folder, { recursive: true, force: true });
    await run(python, ["-m", "venv", folder], options);
    const pip = join(folder, "bin", "pip");
    await run(
      pip,
      ["install", "--quiet", "--disable-pip-version-check", `litellm[proxy]==${VERSION}`],
      options,
    );
  } catch (error) {
    const lines = String(error).trimEnd().split("\n");
    return { ok: false, why: `LiteLLM ${VERSION} could not be installed: ${lines.slice(-3).join(" ")}` };
  }
  writeFileSync(done, "");
  return { ok: true, program };
}

export interface LiteLlm {
  /** For OPENAI_BASE_URL. */
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** Starts it in front of a server. It asks once, so that our own retries are what is seen. */
export async function startLiteLlm(
  program: string,
  upstream: string,
  models: readonly string[],
): Promise<LiteLlm> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-litellm-"));
  const config = join(home, "config.json");
  // YAML by another name: JSON is part of it.
  writeFileSync(
    config,
    JSON.stringify({
      model_list: models.map((name) => ({
        model_name: name,
        litellm_params: { model: `openai/${name}`, api_base: upstream, api_key: "sk-upstream" },
      })),
      litellm_settings: { num_retries: 0, telemetry: false },
      router_settings: { num_retries: 0, disable_cooldowns: true },
    }),
  );
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const proxy = ownProcess(
    "LiteLLM",
    {
      command: program,
      args: ["--config", config, "--host", "127.0.0.1", "--port", String(port)],
      log: join(home, "litellm.log"),
      cwd: home,
      env: {
        PATH: process.env["PATH"],
        HOME: home,
        // Its list of prices comes with it, and it calls nothing but the upstream.
        LITELLM_LOCAL_MODEL_COST_MAP: "True",
        // Reached from this machine alone.
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
        NO_PROXY: "127.0.0.1",
      },
    },
    async () => {
      const { ok, status } = await fetch(`${address}/health/liveliness`);
      if (!ok) throw new Error(`It answers ${status}.`);
    },
    START_MS,
  );
  const close = async (): Promise<void> => {
    await proxy.stop();
    rmSync(home, { recursive: true, force: true });
  };
  await proxy.start().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { baseUrl: `${address}/v1`, close };
}
