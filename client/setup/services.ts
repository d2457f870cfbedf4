/** Starts missing services and finds running ones: everything a worker needs, in one call. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEFAULT_IMAGE, imageNamed } from "../../activities/config/sandbox-settings.ts";
import { probePostgres } from "../../temporal/postgres-probe.ts";
import { dockerHasImage } from "../../temporal/probe.ts";
import { PostgresAddressWrong, readPostgresAddress } from "../../activities/store/postgres-address.ts";
import { PATIENT } from "../../temporal/patience.ts";
import { clientUser } from "../config/config.ts";
import { usageError } from "../console/errors.ts";
import { definedFields } from "../console/format.ts";
import { ensureDocker } from "./docker-engine.ts";
import { ensurePostgres, ownPostgresUrl, POSTGRES_PORT } from "./postgres.ts";
import { makePrivate, endProcess, childEnvironment, freePort } from "./processes.ts";
import { allOrFirstFailure, type Say } from "./progress.ts";
import {
  settingHash,
  locked,
  readState,
  remember,
  rememberFound,
  type ServiceName,
  type SetUp,
} from "./state.ts";
import { chooseQueue, DEFAULT_QUEUE } from "./temporal-server.ts";
import { configuredTemporal, ensureTemporal, TEMPORAL_PORT, TEMPORAL_UI_PORT } from "./temporal.ts";
import { answersWhileAlive, startService } from "./start-service.ts";

export type Need = "postgres" | "temporal" | "docker" | "image" | "model";

/** Default: `.longhaul` of the project, and the usual ports. */
export interface BringUpOptions extends Pick<SetUp, "say">, Partial<Pick<SetUp, "home" | "ports">> {
  readonly need: readonly Need[];
  /** Image of a session's sandbox, if it is not the default one. */
  readonly image?: string;
}

export interface LocalServices {
  readonly databaseUrl: string;
  /** host:port; namespace, TLS and key come from Temporal's own configuration. */
  readonly temporalAddress: string;
  readonly uiUrl: string | undefined;
  /** Where client and worker of this installation meet. */
  readonly taskQueue: string;
  /** undefined = the default socket. */
  readonly dockerHost: string | undefined;
  readonly sandboxImage: string | undefined;
  /** Set if the rehearsal model is used. */
  readonly rehearsalUrl: string | undefined;
  /** Further variables of child processes. */
  readonly environment: Readonly<Record<string, string>>;
}

export const projectFolder = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");
export const projectHome = join(projectFolder, ".longhaul");

/** Idempotent; running services are not touched. All services in parallel. @throws ServiceMissing */
export async function bringUp(options: BringUpOptions): Promise<LocalServices> {
  const { need, say, home = projectHome, ports = "fixed" } = options;
  const setUp: SetUp = { home, ports, say };
  makePrivate(home);
  return locked(home, say, async () => {
    const docker = async () => {
      if (!need.includes("docker") && !need.includes("image")) return undefined;
      const mayInstall = settingOf("LONGHAUL_NO_INSTALL") !== "1";
      await ensureDocker({ home, say, mayInstall });
      return need.includes("image") ? ensureImages(options) : undefined;
    };
    // Each of these writes its own entry of the state synchronously, so they do not overwrite each other's.
    const [, temporal, image] = await allOrFirstFailure([
      need.includes("postgres") ? postgres(setUp) : undefined,
      need.includes("temporal") ? ensureTemporal(setUp) : undefined,
      docker(),
      need.includes("model") && wantsRehearsal() ? ensureRehearsal(setUp) : undefined,
    ] as const);
    // If the database and the server are both ours, or both configured, they are shared together.
    const ownDatabase = ports === "fixed" && settingOf("DATABASE_URL") === undefined;
    if (
      temporal !== undefined &&
      ownDatabase &&
      readState(home).services.temporal?.address !== temporal.address
    ) {
      await chooseQueue({ home, temporalAddress: temporal.address, say });
    }
    const services = findServices(home, ports);
    return withEnvironment({
      ...services,
      ...(temporal === undefined ? {} : { temporalAddress: temporal.address, uiUrl: temporal.uiUrl }),
      ...(image === undefined ? {} : { sandboxImage: image }),
    });
  });
}

/**
 * Services from the environment, from what `bringUp` recorded, or the defaults. Starts nothing and sends nothing.
 */
export function findServices(home: string = projectHome, ports: "fixed" | "free" = "fixed"): LocalServices {
  const { services, found } = readState(home);
  const usesFreePorts = ports === "free";
  const temporalAddress =
    (usesFreePorts ? undefined : configuredTemporal()) ??
    services.temporal?.address ??
    found.temporal ??
    `127.0.0.1:${TEMPORAL_PORT}`;
  return withEnvironment({
    databaseUrl:
      (usesFreePorts ? undefined : settingOf("DATABASE_URL")) ??
      ownPostgresUrl(home) ??
      `postgres://postgres@127.0.0.1:${POSTGRES_PORT}/longhaul`,
    temporalAddress,
    uiUrl:
      temporalAddress === services.temporal?.address ? services.temporal.uiUrl : usualUi(temporalAddress),
    taskQueue: settingOf("LONGHAUL_TASK_QUEUE") ?? found.queue ?? DEFAULT_QUEUE,
    dockerHost: settingOf("DOCKER_HOST"),
    sandboxImage: settingOf("SANDBOX_IMAGE"),
    rehearsalUrl: wantsRehearsal() ? services.rehearsal?.address : undefined,
  });
}

/** URL for creating roles: as the superuser of our own Postgres, else from the environment. */
export function operatorDatabaseUrl(): string {
  return settingOf("DATABASE_URL") ?? ownPostgresUrl(projectHome, "superuser") ?? findServices().databaseUrl;
}

/** Ends the services that we started, the worker first, and no others. Data stays. */
export async function bringDown(options: {
  readonly home?: string;
  readonly say: Say;
  /** Services that keep running. */
  readonly keep?: readonly ServiceName[];
}): Promise<{ readonly ended: readonly string[] }> {
  const home = options.home ?? projectHome;
  return locked(home, options.say, async () => {
    const ended: string[] = [];
    const stopOrder: readonly ServiceName[] = ["next-worker", "worker", "rehearsal", "temporal", "postgres"];
    for (const name of stopOrder.filter((candidate) => options.keep?.includes(candidate) !== true)) {
      const service = readState(home).services[name];
      if (service === undefined) continue;
      // SIGINT is Postgres' fast shutdown: it does not wait for its clients.
      const signal = name === "postgres" ? "SIGINT" : "SIGTERM";
      if (await endProcess(service, { signal, graceMs: name.endsWith("worker") ? 20_000 : 10_000 }))
        ended.push(name === "next-worker" ? "worker" : name);
      remember(home, name, undefined);
    }
    // The Docker engine keeps running: other programs may use it by now.
    if (readState(home).services.docker !== undefined) {
      options.say("The Docker engine keeps running; stop it with `kill $(cat /var/run/docker.pid)`.");
    }
    return { ended: [...new Set(ended)] };
  });
}

async function postgres(setUp: SetUp): Promise<void> {
  const configured = setUp.ports === "fixed" ? settingOf("DATABASE_URL") : undefined;
  if (configured === undefined) return void (await ensurePostgres(setUp));
  await probePostgres(configured, { ...PATIENT, say: setUp.say });
  rememberFound(setUp.home, "postgres", "DATABASE_URL");
}

/** The images for sandboxes and for setting up their firewall. @returns the default sandbox image */
async function ensureImages({ say, image }: BringUpOptions): Promise<string> {
  const tag = imageNamed(settingOf("SANDBOX_IMAGE"));
  for (const imageName of new Set([image ?? tag, settingOf("LONGHAUL_GUARD_IMAGE") ?? DEFAULT_IMAGE])) {
    if (await dockerHasImage(imageName)) continue;
    // Loaded on demand: a start with all services running does not need the engine's client.
    const [{ connectDocker }, { ensureSandboxImage }] = await Promise.all([
      import("../../activities/sandbox/docker/connect-docker.ts"),
      import("./sandbox-image.ts"),
    ]);
    await ensureSandboxImage({ docker: connectDocker(), tag: imageName, say });
  }
  return tag;
}

/** A server at the default port has its Web UI at the default one. */
function usualUi(temporalAddress: string): string | undefined {
  return temporalAddress.endsWith(`:${TEMPORAL_PORT}`) && /^(127\.0\.0\.1|localhost):/.test(temporalAddress)
    ? `http://127.0.0.1:${TEMPORAL_UI_PORT}`
    : undefined;
}

/** An environment variable; an empty one counts as not set. */
export function settingOf(name: string): string | undefined {
  return process.env[name] || undefined;
}

function withEnvironment(services: Omit<LocalServices, "environment">): LocalServices {
  const environment = definedFields({
    DATABASE_URL: services.databaseUrl,
    TEMPORAL_ADDRESS: services.temporalAddress,
    LONGHAUL_TASK_QUEUE: services.taskQueue,
    DOCKER_HOST: services.dockerHost,
    SANDBOX_IMAGE: services.sandboxImage,
    LONGHAUL_REHEARSAL_URL: services.rehearsalUrl,
  });
  return { ...services, environment };
}

/**
 * Only ids and codes are sent to Temporal: people's texts are in Postgres alone. A shell that sets nothing does as the local
 * worker does.
 * @throws ClientError (usage) for another value than `ids` and `full`: a typo must not send texts
 */
export function idsOnly(home: string = projectHome): boolean {
  const recorded = readState(home).services.worker?.settings?.["LONGHAUL_HISTORY"];
  const usual = recorded === settingHash("LONGHAUL_HISTORY", "ids") ? "ids" : "full";
  const history = settingOf("LONGHAUL_HISTORY") ?? usual;
  if (history !== "ids" && history !== "full")
    throw usageError(`LONGHAUL_HISTORY=${history} is neither ids nor full.`, "Nothing was sent.");
  return history === "ids";
}

/** Before anything is sent. An address is not printed: it may contain a password. @throws ClientError (usage) */
export function checkSettings(): void {
  idsOnly();
  clientUser();
  const url = settingOf("DATABASE_URL");
  if (url === undefined) return;
  try {
    readPostgresAddress(url);
  } catch (error) {
    if (!(error instanceof PostgresAddressWrong)) throw error;
    throw usageError(
      `DATABASE_URL cannot be used: ${error.message}.`,
      "Unset it to use a server that longhaul up brings up.",
    );
  }
}

const REHEARSAL_PORT = 8_788;

/** True if neither a key nor a compatible server is configured. */
function wantsRehearsal(): boolean {
  return !process.env["OPENAI_API_KEY"] && !process.env["OPENAI_BASE_URL"];
}

/** @returns its base URL. @throws ServiceMissing */
async function ensureRehearsal({ home, ports, say }: SetUp): Promise<string> {
  const running = readState(home).services.rehearsal;
  if (running !== undefined && (await answersWhileAlive(running, () => probe(running.address))))
    return running.address;
  const port = await freePort(ports === "fixed" ? REHEARSAL_PORT : 0);
  const address = `http://127.0.0.1:${port}/v1`;
  await startService({
    home,
    name: "rehearsal",
    title: "Rehearsal model",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../examples/rehearsal/main.ts", import.meta.url))],
    env: { ...childEnvironment("rehearsal"), LONGHAUL_REHEARSAL_PORT: String(port) },
    address,
    probe: () => probe(address),
    timeoutMs: 20_000,
    otherwise: "set OPENAI_API_KEY to use a real model",
  });
  say(
    "No OPENAI_API_KEY is set: in the place of OpenAI's models, the rehearsal model plays a written script, and its tools really run.",
  );
  return address;
}

/** Any answer counts: its content does not matter. */
async function probe(address: string): Promise<void> {
  const response = await fetch(address, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
}
