/** Reports what is found, what is missing, and how to fix it. Starts only one sandbox for a second; takes at most 10 s. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type AgentConfig, agentConfigSchema } from "../../activities/config/agent-config.ts";
import type { ModelChoice } from "../config/config.ts";
import { plural } from "../../activities/text/format.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { engineAddress } from "../../activities/sandbox/docker/engine-address.ts";
import { DEFAULT_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { withoutPassword } from "../../temporal/probe.ts";
import { describeDifference, isDifferent, environmentOf, runningWorker } from "./worker-process.ts";
import { modelFinding } from "./model-check.ts";
import { findOnPath } from "./processes.ts";
import { lostProtections, protectionMissing } from "./state.ts";
import { type Check, requirementChecks } from "./requirements.ts";
import { findServices, type LocalServices, projectHome, settingOf } from "./services.ts";
import { cacheFolder } from "./temporal-binary.ts";
import { askTemporal, versionsFinding, workersOf } from "./temporal-server.ts";
import { configuredTemporal } from "./temporal.ts";

interface Setting {
  readonly name: string;
  /** Masked if it is a secret. */
  readonly value: string;
  /** `environment`, `temporal.toml`, `.longhaul` (started by us) or `default`. */
  readonly source: string;
}

export interface Diagnosis {
  readonly checks: readonly Check[];
  readonly settings: readonly Setting[];
}

export async function diagnose(options: {
  readonly home?: string;
  /** The configured sandbox settings; default: the configuration's defaults. */
  readonly sandbox?: AgentConfig["sandbox"] | undefined;
  /** Undefined if the configuration cannot be read, which is a finding of its own. */
  readonly model?: ModelChoice | undefined;
}): Promise<Diagnosis> {
  const home = options.home ?? projectHome;
  const services = findServices(home);
  const sandbox = options.sandbox ?? agentConfigSchema.parse({}).sandbox;
  const [required, worker, versions] = await Promise.all([
    requirementChecks(services, sandbox),
    workerCheck(home, services),
    versionsCheck(services),
  ]);
  const checks = [
    ...required,
    ...(options.model === undefined ? [] : [modelFinding(options.model, process.env, services.rehearsalUrl)]),
    worker,
    ...versions,
    temporalProgram(),
  ];
  return { checks, settings: settingsOf(services, home) };
}

async function workerCheck(home: string, services: LocalServices): Promise<Check> {
  const running = await runningWorker(home, services);
  if (running !== undefined) {
    const { worker, difference } = running;
    const found = `process ${worker.pid}, log ${worker.log}`;
    if (!isDifferent(difference)) return { name: "Worker", ok: true, found };
    const lost = lostProtections(worker, environmentOf(services));
    return {
      name: "Worker",
      ok: true,
      warning: true,
      found: `${found}; it was started before ${describeDifference(difference)} changed, or from a shell with other settings`,
      fix:
        lost.length > 0
          ? protectionMissing(lost).fix
          : "The next `longhaul run`, `say` or `up --detach` from this shell replaces it; its current work is finished first.",
    };
  }
  return servedByOthers(services);
}

const SHOWN_WORKERS = 5;
/** Source: doctor ends within about 10 s. */
const ASK_MS = 2_000;

/** Workers that a person started alone, or that run elsewhere: whoever polls the queue of this installation. */
async function servedByOthers({ temporalAddress, taskQueue }: LocalServices): Promise<Check> {
  const name = "Worker";
  try {
    const workers = await askTemporal(temporalAddress, ASK_MS, (connection, namespace) =>
      workersOf(connection, namespace, taskQueue),
    );
    if (workers.length > 0) {
      const shown = workers.slice(0, SHOWN_WORKERS).join(", ");
      return {
        name,
        ok: true,
        found: `${plural(workers.length, "worker")} of the queue ${taskQueue}: ${shown}`,
      };
    }
  } catch {
    return { name, ok: true, warning: true, found: "not looked for: Temporal is missing" };
  }
  const fix = "`npm start` starts one, or `longhaul worker`.";
  return { name, ok: false, found: `none serves the queue ${taskQueue}`, fix };
}

/** Checks only workers with deployment versions. */
async function versionsCheck({ temporalAddress }: LocalServices): Promise<Check[]> {
  const deployment = settingOf("LONGHAUL_DEPLOYMENT");
  if (deployment === undefined) return [];
  return [{ name: "Versions", ...(await versionsFinding(temporalAddress, deployment)) }];
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
  const rows: readonly (readonly [name: string, value: string, otherwise?: string, variable?: string])[] = [
    ["DATABASE_URL", withoutPassword(services.databaseUrl), ours],
    [
      "TEMPORAL_ADDRESS",
      services.temporalAddress,
      configuredTemporal() === undefined ? ours : "temporal.toml",
    ],
    ["task queue", services.taskQueue, ours, "LONGHAUL_TASK_QUEUE"],
    ["DOCKER_HOST", ...dockerSetting()],
    ["SANDBOX_IMAGE", services.sandboxImage ?? DEFAULT_IMAGE],
    ["OPENAI_API_KEY", masked(settingOf("OPENAI_API_KEY"))],
    ["OPENAI_BASE_URL", settingOf("OPENAI_BASE_URL") ?? "the provider's own"],
    ["LONGHAUL_MODEL", settingOf("LONGHAUL_MODEL") ?? "not set"],
  ];
  return rows.map(([name, value, otherwise = "default", variable = name]) => ({
    name,
    value,
    source: settingOf(variable) === undefined ? otherwise : "environment",
  }));
}

/** @returns the engine's address, and the context that names it */
function dockerSetting(): readonly [value: string, otherwise: string] {
  try {
    const { shown, from } = engineAddress();
    return [shown, from];
  } catch (error) {
    return [reasonOf(error), "not usable"];
  }
}

/** The first characters distinguish two keys; short keys are hidden completely. */
function masked(secret: string | undefined): string {
  if (secret === undefined) return "not set";
  return secret.length < 20 ? "set, masked" : `${secret.slice(0, 3)}… masked`;
}
