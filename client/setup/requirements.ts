/**
 * What a worker's surroundings must be able to do, each with the check that `doctor` makes of it. docs/operations.md has the same list
 * as a table, and a test compares the two.
 */
import { existsSync } from "node:fs";
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { gitAccessOf } from "../../activities/git/git-access.ts";
import { gitHubAppSettings, gitHubAppTrouble } from "../../activities/git/github-app.ts";
import { checkGit, isPermissionDenied, probeDocker, probeTemporal } from "../../temporal/probe.ts";
import { probePostgres, probeTables } from "../../temporal/postgres-probe.ts";
import {
  plainReason,
  ServiceMissing,
  trustNamedAuthorities,
  WrongSettings,
} from "../../temporal/service-missing.ts";
import { lookAtAttributes, SEARCH_ATTRIBUTES } from "../../temporal/search-attributes.ts";
import { askTemporal } from "./temporal-server.ts";
import { findOnPath } from "./processes.ts";
import { checkRunc, checkSandbox, type Finding } from "./sandbox-check.ts";
import { type LocalServices, settingOf } from "./services.ts";
import { environmentOf } from "./worker-process.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { harmlessLine } from "../console/format.ts";

/** Names of the checks, in the order in which doctor shows them. */
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
] as const;

type Requirement = (typeof REQUIREMENTS)[number];

export interface Check extends Finding {
  readonly name: string;
}

/** One finding for each requirement; what is not configured has none. Never rejects for a part that is missing. */
export async function requirementChecks(
  services: LocalServices,
  sandbox: AgentConfig["sandbox"],
): Promise<Check[]> {
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
    workerSettingsFinding(environmentOf(services)),
    probed(undefined, () => gitFolder()),
  ]);
  const notLooked = notLookedAt("Docker");
  const found: Record<Requirement, Finding | undefined> = {
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
  };
  return REQUIREMENTS.flatMap((name) => {
    const finding = found[name];
    return finding === undefined ? [] : [{ name, ...finding }];
  });
}

const notLookedAt = (missing: string): Finding => ({
  ok: true,
  warning: true,
  found: `not looked at: ${missing} is missing`,
});

const after = (first: Finding, name: string, look: () => Promise<Finding>): Promise<Finding> =>
  first.ok ? look() : Promise.resolve(notLookedAt(name));

/** @param variable that names the service, if starting one of our own would help while it is not set */
async function probed(variable: string | undefined, probe: () => Promise<string>): Promise<Finding> {
  try {
    return { ok: true, found: await probe() };
  } catch (error) {
    if (error instanceof WrongSettings)
      return { ok: false, found: error.message, fix: `Correct ${variable ?? "it"}, or unset it.` };
    if (!(error instanceof ServiceMissing)) throw error;
    // If its address was configured, starting another one would not help.
    const isOurs =
      variable !== undefined && settingOf(variable) === undefined && !isPermissionDenied(error.cause);
    return { ok: false, found: error.problem, fix: isOurs ? BRINGS_UP : error.fix };
  }
}

const ASK_MS = 3_000;
const BRINGS_UP = "`npm start` or `longhaul up` starts one.";

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
    const { customAttributes } = await askTemporal(address, ASK_MS, (connection, namespace) =>
      connection.withDeadline(Date.now() + ASK_MS, () =>
        connection.operatorService.listSearchAttributes({ namespace }),
      ),
    );
    const { missing, other } = lookAtAttributes(customAttributes);
    if (other.length > 0)
      return { ok: true, warning: true, found: `of another type than Keyword: ${other.join(", ")}`, fix };
    if (missing.length === 0) return { ok: true, found: "all there" };
    const found = `${missing.join(", ")} missing; the next worker adds them, if the server lets it`;
    return { ok: true, warning: true, found, fix };
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

/** As a worker on this machine would use it. @throws ServiceMissing */
async function gitFolder(): Promise<string> {
  const access = gitAccessOf(process.env);
  const isNew = !existsSync(access.folder);
  await checkGit(access);
  return `${access.folder}${isNew ? ", made now" : ""}, can be written to`;
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
