/** A Docker engine: the one configured or running, else, on Debian or Ubuntu with root, installed and started. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment } from "./environment.ts";
import { isPermissionDenied, probeDocker } from "../../worker/connect/probe.ts";
import { isAlive, launch, run, tail } from "./processes.ts";
import { until } from "../../worker/connect/until.ts";
import { type Say, slowly } from "./progress.ts";
import { ServiceMissing } from "../../worker/connect/service-missing.ts";
import { remember } from "./state.ts";
import { findOnPath } from "./temporal-binary.ts";

const SOCKET = "/var/run/docker.sock";
/** `docker-init`, the containers' init process, is a link to tini: named, so that no release of docker.io leaves it out. */
const PACKAGES = ["docker.io", "iptables", "tini"] as const;
const COMMANDS = `apt-get install ${PACKAGES.join(" ")}, then start dockerd`;

export interface DockerOptions {
  readonly home: string;
  readonly say: Say;
  /** From DOCKER_HOST; undefined = the default socket. */
  readonly dockerHost: string | undefined;
  /** False where LONGHAUL_NO_INSTALL=1. */
  readonly mayInstall: boolean;
}

/** Returns once an engine answers. @throws ServiceMissing with the commands that fix it */
export async function ensureDocker(options: DockerOptions): Promise<void> {
  const { dockerHost } = options;
  if (dockerHost !== undefined) {
    await probeDocker(dockerHost);
    return;
  }
  const missing = await probeDocker(undefined).then(
    () => undefined,
    (error: unknown) => error as ServiceMissing,
  );
  if (missing === undefined) return;
  // An engine is there: nothing is to be installed.
  if (isPermissionDenied(missing.cause)) throw missing;
  if (findOnPath("dockerd") === undefined) await install(options, missing);
  else if (process.getuid?.() !== 0)
    throw refused("the Docker daemon is not running, and starting it requires root", missing);
  await startDaemon(options);
}

async function install(options: DockerOptions, missing: ServiceMissing): Promise<void> {
  if (!options.mayInstall) throw refused("it is not installed, and LONGHAUL_NO_INSTALL is set", missing);
  if (process.getuid?.() !== 0)
    throw refused("it is not installed, and installing it requires root", missing);
  if (!isDebian() || findOnPath("apt-get") === undefined)
    throw refused("it is not installed, and this is not Debian or Ubuntu", missing);
  const env = { ...childEnvironment("installer"), DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args: string[]) =>
    run("apt-get", ["-q", "-y", ...args], { env, maxBuffer: 64 * 1024 * 1024, timeout: 10 * 60_000 });
  try {
    await slowly(
      options.say,
      `Installing Docker with apt-get (${PACKAGES.join(", ")}): no engine was found`,
      async () => {
        await apt("update");
        // Without --no-install-recommends a desktop's worth of packages comes along.
        await apt("install", "--no-install-recommends", ...PACKAGES);
      },
    );
  } catch (error) {
    const stderr = (error as { stderr?: string }).stderr ?? "";
    throw refused(`apt-get failed: ${stderr.trim().split("\n").at(-1) ?? ""}`, missing);
  }
}

async function startDaemon(options: DockerOptions): Promise<void> {
  const { home, say } = options;
  // Where systemd runs, the package has started the service or can; elsewhere (containers) there is only us.
  if (existsSync("/run/systemd/system")) {
    await run("systemctl", ["start", "docker"], { timeout: 60_000 }).catch(() => {});
    if (await answers(10_000)) return;
  }
  const log = join(home, "logs", "dockerd.log");
  const mark = await launch({
    command: "dockerd",
    args: ["--host", `unix://${SOCKET}`],
    log,
    env: childEnvironment("dockerd"),
  });
  remember(home, "docker", { ...mark, address: `unix://${SOCKET}`, log });
  const up = await until(
    async () => {
      if (!(await isAlive(mark))) throw notStarted(log);
      return answers(0);
    },
    60_000,
    200,
  );
  if (!up) throw notStarted(log);
  say("Docker engine started (dockerd was not running).");
}

function answers(waitMs: number): Promise<boolean> {
  return until(
    () =>
      probeDocker(undefined, 2_000).then(
        () => true,
        () => false,
      ),
    waitMs,
    200,
  );
}

function notStarted(log: string): ServiceMissing {
  return new ServiceMissing({
    service: "Docker engine",
    address: SOCKET,
    problem: "did not start",
    reason: `dockerd exited: ${tail(log, 2)}`,
    fix: `See ${log}. Inside a container, dockerd needs the container to be privileged; otherwise set DOCKER_HOST to an engine elsewhere.`,
  });
}

function refused(reason: string, cause: ServiceMissing): ServiceMissing {
  return new ServiceMissing({
    service: "Docker engine",
    address: SOCKET,
    problem: "is not available",
    reason,
    fix: `As root: ${COMMANDS}. Or set DOCKER_HOST to a running engine.`,
    cause,
  });
}

function isDebian(): boolean {
  try {
    return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync("/etc/os-release", "utf8"));
  } catch {
    return false;
  }
}
