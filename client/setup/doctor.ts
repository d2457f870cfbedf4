/** What is found, what is missing, and how to fix it. Starts nothing but one sandbox for a second; takes at most 10 s. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type AgentConfig, agentConfigSchema } from "../../activities/config/agent-config.ts";
import { DEFAULT_IMAGE } from "../../activities/config/default-image.ts";
import {
  isPermissionDenied,
  probeDocker,
  probePostgres,
  probeTemporal,
  withoutPassword,
} from "../../worker/connect/probe.ts";
import { isAlive } from "./processes.ts";
import { ServiceMissing } from "../../worker/connect/service-missing.ts";
import { checkSandbox, runcFinding, runcVersion } from "./sandbox-check.ts";
import { findServices, type LocalServices, projectHome, settingOf } from "./services.ts";
import { readState } from "./state.ts";
import { cacheFolder, findOnPath } from "./temporal-binary.ts";
import { configuredTemporal } from "./temporal.ts";

interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Not as it should be, or not measured; nothing that stops a task. */
  readonly warning?: true;
  readonly found: string;
  /** What to do, where it is not all right. */
  readonly fix?: string;
}

interface Setting {
  readonly name: string;
  /** Masked where it is a secret. */
  readonly value: string;
  /** `environment`, `temporal.toml`, `.longhaul` (brought up by us) or `default`. */
  readonly source: string;
}

export interface Diagnosis {
  readonly checks: readonly Check[];
  readonly settings: readonly Setting[];
}

const BRINGS_UP = "`npm start` or `longhaul up` starts one.";

export async function diagnose(options: {
  readonly home?: string;
  /** The configuration's; default its defaults. */
  readonly sandbox?: AgentConfig["sandbox"] | undefined;
}): Promise<Diagnosis> {
  const home = options.home ?? projectHome;
  const services = findServices(home);
  const [postgres, temporal, docker, worker] = await Promise.all([
    probed("Postgres", () => probePostgres(services.databaseUrl), "DATABASE_URL"),
    probed("Temporal", () => probeTemporal(services.temporalAddress), "TEMPORAL_ADDRESS"),
    probed("Docker", () => probeDocker(services.dockerHost), "DOCKER_HOST"),
    workerCheck(home),
  ]);
  const sandbox = options.sandbox ?? agentConfigSchema.parse({}).sandbox;
  const walls = docker.ok ? await sandboxChecks(services, sandbox) : [];
  const checks = [
    nodeCheck(),
    postgres,
    temporal,
    docker,
    ...walls,
    modelCheck(services),
    worker,
    temporalProgram(),
  ];
  return { checks, settings: settingsOf(services, home) };
}

function nodeCheck(): Check {
  return { name: "Node", ok: true, found: process.versions.node };
}

async function probed(name: string, probe: () => Promise<string>, variable: string): Promise<Check> {
  try {
    return { name, ok: true, found: await probe() };
  } catch (error) {
    if (!(error instanceof ServiceMissing)) throw error;
    // Where its address was given, bringing another one up would not help.
    const isOurs = settingOf(variable) === undefined && !isPermissionDenied(error.cause);
    return { name, ok: false, found: error.problem, fix: isOurs ? BRINGS_UP : error.fix };
  }
}

function modelCheck(services: LocalServices): Check {
  if (settingOf("OPENAI_API_KEY") !== undefined)
    return { name: "Model", ok: true, found: "OPENAI_API_KEY is set" };
  const server = settingOf("OPENAI_BASE_URL");
  if (server !== undefined)
    return { name: "Model", ok: true, found: `compatible server at ${withoutPassword(server)}` };
  const place = services.rehearsalUrl === undefined ? "" : ` at ${services.rehearsalUrl}`;
  return { name: "Model", ok: true, found: `no key: the rehearsal model plays a written script${place}` };
}

async function sandboxChecks(services: LocalServices, sandbox: AgentConfig["sandbox"]): Promise<Check[]> {
  const image = services.sandboxImage ?? sandbox.image;
  const [{ network, isolation }, runtime] = await Promise.all([
    checkSandbox({ image, guardImage: settingOf("LONGHAUL_GUARD_IMAGE"), sandbox }),
    runcVersion().then(runcFinding, () => ({ ok: true, warning: true as const, found: "unknown" })),
  ]);
  return [
    { name: "container runtime", ...runtime },
    { name: "sandbox network", ...network },
    { name: "sandbox isolation", ...isolation },
  ];
}

async function workerCheck(home: string): Promise<Check> {
  const worker = readState(home).services.worker;
  if (worker !== undefined && (await isAlive(worker))) {
    return { name: "Worker", ok: true, found: `process ${worker.pid}, log ${worker.log}` };
  }
  return {
    name: "Worker",
    ok: false,
    found: "none is running on this machine",
    fix: "`npm start` starts one, or `longhaul worker`.",
  };
}

function temporalProgram(): Check {
  const name = "temporal program";
  const program = findOnPath("temporal");
  if (program !== undefined) return { name, ok: true, found: program };
  if (existsSync(cacheFolder())) return { name, ok: true, found: `kept in ${cacheFolder()}` };
  return { name, ok: true, found: "not installed; it is downloaded if no server is running" };
}

function settingsOf(services: LocalServices, home: string): Setting[] {
  const ours = existsSync(join(home, "services.json")) ? ".longhaul" : "default";
  const from = (variable: string, otherwise: string) =>
    settingOf(variable) === undefined ? otherwise : "environment";
  const temporal = configuredTemporal() === undefined ? ours : from("TEMPORAL_ADDRESS", "temporal.toml");
  return [
    {
      name: "DATABASE_URL",
      value: withoutPassword(services.databaseUrl),
      source: from("DATABASE_URL", ours),
    },
    { name: "TEMPORAL_ADDRESS", value: services.temporalAddress, source: temporal },
    { name: "task queue", value: services.taskQueue, source: from("LONGHAUL_TASK_QUEUE", ours) },
    {
      name: "DOCKER_HOST",
      value: services.dockerHost ?? "unix:///var/run/docker.sock",
      source: from("DOCKER_HOST", "default"),
    },
    {
      name: "SANDBOX_IMAGE",
      value: services.sandboxImage ?? DEFAULT_IMAGE,
      source: from("SANDBOX_IMAGE", "default"),
    },
    {
      name: "OPENAI_API_KEY",
      value: masked(settingOf("OPENAI_API_KEY")),
      source: from("OPENAI_API_KEY", "default"),
    },
    {
      name: "OPENAI_BASE_URL",
      value: settingOf("OPENAI_BASE_URL") ?? "the provider's own",
      source: from("OPENAI_BASE_URL", "default"),
    },
    {
      name: "LONGHAUL_MODEL",
      value: settingOf("LONGHAUL_MODEL") ?? "not set",
      source: from("LONGHAUL_MODEL", "default"),
    },
  ];
}

/** The first characters tell two keys apart; short ones are hidden whole. */
function masked(secret: string | undefined): string {
  if (secret === undefined) return "not set";
  return secret.length < 20 ? "set, masked" : `${secret.slice(0, 3)}… masked`;
}
