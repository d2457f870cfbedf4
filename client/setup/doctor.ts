/** Reports what is found, what is missing, and how to fix it. Starts only one sandbox for a second; takes at most 10 s. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type AgentConfig, agentConfigSchema } from "../../activities/config/agent-config.ts";
import type { ModelChoice } from "../config/config.ts";
import { plural } from "../../activities/text/format.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { engineAddress } from "../../activities/sandbox/docker/engine-address.ts";
import { DEFAULT_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { withoutPassword, probeDocker, probeTemporal } from "../../temporal/probe.ts";
import { describeDifference, isDifferent, toWorkerEnvironment, runningWorker } from "./worker-process.ts";
import { modelFinding } from "./model-check.ts";
import { findOnPath } from "./processes.ts";
import { lostProtections, protectionMissing } from "./state.ts";
import { findServices, type LocalServices, projectHome, settingOf } from "./services.ts";
import { cacheFolder } from "./temporal-binary.ts";
import { askTemporal, versionsFinding, workersOf } from "./temporal-server.ts";
import { configuredTemporal } from "./temporal.ts";
import { gitHubAppSettings, gitHubAppTrouble } from "../../activities/git/github-app.ts";
import { signingFinding } from "./repository-check.ts";
import { probePostgres, probeTables } from "../../temporal/postgres-probe.ts";
import {
  plainReason,
  ServiceMissing,
  trustNamedAuthorities,
  WrongSettings,
} from "../../temporal/service-missing.ts";
import { lookAtAttributes, SEARCH_ATTRIBUTES } from "../../temporal/search-attributes.ts";
import { type Check, probed } from "./findings.ts";
import { gitFolder, hostDiskCheck, objectStoreCheck } from "./storage-check.ts";
import { checkRunc, checkSandbox, type Finding } from "./sandbox-check.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { harmlessLine } from "../console/format.ts";

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
  const [required, worker, versions, hostDisk, objects] = await Promise.all([
    requirementChecks(services, sandbox),
    workerCheck(home, services),
    versionsCheck(services),
    hostDiskCheck(services),
    objectStoreCheck(),
  ]);
  const checks = [
    ...required,
    ...(options.model === undefined ? [] : [modelFinding(options.model, process.env, services.rehearsalUrl)]),
    worker,
    ...versions,
    ...hostDisk,
    ...objects,
    temporalProgram(),
  ];
  return { checks, settings: settingsOf(services, home) };
}

async function workerCheck(home: string, services: LocalServices): Promise<Check> {
  const running = await runningWorker(home, services);
  if (running !== undefined) {
    const { worker, difference } = running;
    const processText = `process ${worker.pid}, log ${worker.log}`;
    if (!isDifferent(difference)) return { name: "Worker", ok: true, found: processText };
    const lostNames = lostProtections(worker, toWorkerEnvironment(services));
    return {
      name: "Worker",
      ok: true,
      warning: true,
      found: `${processText}; it was started before ${describeDifference(difference)} changed, or from a shell with other settings`,
      fix:
        lostNames.length > 0
          ? protectionMissing(lostNames).fix
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
      const names = workers.slice(0, SHOWN_WORKERS).join(", ");
      return {
        name,
        ok: true,
        found: `${plural(workers.length, "worker")} of the queue ${taskQueue}: ${names}`,
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

/**
 * What a worker's surroundings must be able to do, as the checks' names, in the order in which doctor shows them. docs/operations.md
 * has the same list as a table, and a test compares the two.
 */
export const REQUIREMENTS = [
  "Node",
  "certificate authorities",
  "worker settings",
  "Postgres",
  "tables",
  "Temporal",
  "search attributes",
  "Docker",
  "container runtime",
  "sandbox network",
  "sandbox isolation",
  "git",
  "git folder",
  "GitHub App",
  "signing key",
] as const;

type Requirement = (typeof REQUIREMENTS)[number];

/** One finding for each requirement; what is not configured has none. Never rejects for a part that is missing. */
async function requirementChecks(services: LocalServices, sandbox: AgentConfig["sandbox"]): Promise<Check[]> {
  // Before anything is connected to.
  const authorities = await probed(undefined, async () =>
    ["the usual ones", ...trustNamedAuthorities()].join(", "),
  );
  const [postgres, temporal, docker] = await Promise.all([
    probed("DATABASE_URL", () => probePostgres(services.databaseUrl)),
    probed("TEMPORAL_ADDRESS", () => probeTemporal(services.temporalAddress)),
    probed("DOCKER_HOST", () => probeDocker()),
  ]);
  const [tables, attributes, sandboxes, settings, folder] = await Promise.all([
    after(postgres, "Postgres", () => probed(undefined, () => probeTables(services.databaseUrl))),
    after(temporal, "Temporal", () => searchAttributesFinding(services.temporalAddress)),
    docker.ok ? sandboxFindings(services, sandbox) : undefined,
    workerSettingsFinding(toWorkerEnvironment(services)),
    probed(undefined, () => gitFolder()),
  ]);
  const notLooked = notLookedAt("Docker");
  const findings: Record<Requirement, Finding | undefined> = {
    Node: { ok: true, found: process.versions.node },
    "certificate authorities": authorities,
    "worker settings": settings,
    Postgres: postgres,
    tables,
    Temporal: temporal,
    "search attributes": attributes,
    Docker: docker,
    "container runtime": sandboxes?.runtime ?? notLooked,
    "sandbox network": sandboxes?.network ?? notLooked,
    "sandbox isolation": sandboxes?.isolation ?? notLooked,
    git: gitProgram(),
    "git folder": folder,
    "GitHub App": gitHubApp(),
    "signing key": await signingFinding(process.env),
  };
  return REQUIREMENTS.flatMap((name) => {
    const finding = findings[name];
    return finding === undefined ? [] : [{ name, ...finding }];
  });
}

const notLookedAt = (missing: string): Finding => ({
  ok: true,
  warning: true,
  found: `not looked at: ${missing} is missing`,
});

const after = (first: Finding, name: string, check: () => Promise<Finding>): Promise<Finding> =>
  first.ok ? check() : Promise.resolve(notLookedAt(name));

const ASK_ATTRIBUTES_MS = 3_000;

async function sandboxFindings(services: LocalServices, sandbox: AgentConfig["sandbox"]) {
  const image = services.sandboxImage ?? sandbox.image;
  const [measured, runtime] = await Promise.all([
    checkSandbox({ image, guardImage: settingOf("LONGHAUL_GUARD_IMAGE"), sandbox }),
    checkRunc(),
  ]);
  return { ...measured, runtime };
}

/** A worker adds what is missing, where the server lets it; without them it works, and Temporal's list cannot be searched by them. */
async function searchAttributesFinding(address: string): Promise<Finding> {
  const fix = `Add ${SEARCH_ATTRIBUTES.join(", ")} as Keyword (temporal operator search-attribute create); until then they are left out.`;
  try {
    const { customAttributes } = await askTemporal(address, ASK_ATTRIBUTES_MS, (connection, namespace) =>
      connection.withDeadline(Date.now() + ASK_ATTRIBUTES_MS, () =>
        connection.operatorService.listSearchAttributes({ namespace }),
      ),
    );
    const { missing, other } = lookAtAttributes(customAttributes);
    if (other.length > 0)
      return { ok: true, warning: true, found: `of another type than Keyword: ${other.join(", ")}`, fix };
    if (missing.length === 0) return { ok: true, found: "all there" };
    const lacking = `${missing.join(", ")} missing; the next worker adds them, if the server lets it`;
    return { ok: true, warning: true, found: lacking, fix };
  } catch (error) {
    return { ok: true, warning: true, found: `not shown by Temporal (${plainReason(error)})`, fix };
  }
}

/** The worker clones and pushes with Git; only sessions with --repo need it. */
function gitProgram(): Finding {
  const program = findOnPath("git");
  if (program !== undefined) return { ok: true, found: program };
  return { ok: true, found: "not installed; sessions with --repo need it: apt-get install git" };
}

/** Checked only if one is configured: most workers have none. */
function gitHubApp(): Finding | undefined {
  const settings = gitHubAppSettings(process.env);
  if (settings === undefined) return undefined;
  const wrong = gitHubAppTrouble(settings)?.trouble;
  if (wrong !== undefined) return { ok: false, found: wrong.message, fix: wrong.fix };
  return { ok: true, found: `${settings.id} of ${settings.url}, its key can be read` };
}

const MAX_CHARS = 400;

/** @param environment the worker's */
export async function workerSettingsFinding(environment: Environment): Promise<Finding> {
  const { readWorkerConfig } = await import("../../worker/config.ts");
  // A GitHub App has its own check.
  const others = Object.entries(environment).filter(([name]) => !name.startsWith("LONGHAUL_GITHUB_APP_"));
  try {
    const { policy } = readWorkerConfig(Object.fromEntries(others));
    const file = environment["LONGHAUL_POLICY"];
    const ofPolicy = policy === undefined ? "" : `, the policy of ${file} included`;
    return { ok: true, found: `can be used${ofPolicy}` };
  } catch (error) {
    if (error instanceof ServiceMissing)
      return { ok: false, found: `${error.service} ${error.problem}`, fix: error.fix };
    if (!(error instanceof WrongSettings)) throw error;
    const wrong = error.message.replace("; nothing was started.", ":");
    return { ok: false, found: harmlessLine(wrong, MAX_CHARS), fix: "Correct it: no worker starts with it." };
  }
}
