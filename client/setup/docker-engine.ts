/** A Docker engine: the one configured or running, else, on Debian or Ubuntu with root, installed and started. */
import { existsSync, readFileSync } from "node:fs";
import { isPermissionDenied, probeDocker } from "../../temporal/probe.ts";
import { engineAddress, EngineSettingWrong } from "../../activities/sandbox/docker/engine-address.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { succeeds, until } from "../../temporal/patience.ts";
import { aptInstall } from "./apt.ts";
import { childEnvironment, findOnPath, run } from "./processes.ts";
import type { Say } from "./progress.ts";
import { startService } from "./start-service.ts";

const SOCKET = "/var/run/docker.sock";
/** `docker-init`, the containers' init process, is a link to tini, which some release of docker.io might not install. */
const PACKAGES = ["docker.io", "iptables", "tini"] as const;

export interface DockerOptions {
  readonly home: string;
  readonly say: Say;
  /** False if LONGHAUL_NO_INSTALL=1. */
  readonly mayInstall: boolean;
}

/** Returns once an engine answers. @throws ServiceMissing with the commands that fix it */
export async function ensureDocker(options: DockerOptions): Promise<void> {
  const { home, say } = options;
  try {
    await probeDocker();
    return;
  } catch (error) {
    // We do not start a configured engine, and one that refuses this user is already running.
    if (!(error instanceof ServiceMissing) || isChosen(error) || isPermissionDenied(error.cause)) throw error;
    await requireDaemon(options, error);
  }
  // With systemd, the package has started the service or can start it; otherwise (in containers) we have to.
  if (existsSync("/run/systemd/system")) {
    await run("systemctl", ["start", "docker"], { timeout: 60_000 }).catch(() => undefined);
    if (await until(() => succeeds(probe()), 10_000, 200)) return;
  }
  await startService({
    home,
    name: "docker",
    title: "Docker engine",
    command: "dockerd",
    args: ["--host", `unix://${SOCKET}`],
    env: childEnvironment("dockerd"),
    address: `unix://${SOCKET}`,
    probe,
    timeoutMs: 60_000,
    otherwise:
      "set DOCKER_HOST to an engine elsewhere. Inside a container, dockerd needs the container to be privileged",
  });
  say("Docker engine started (dockerd was not running).");
}

const probe = () => probeDocker({ DOCKER_HOST: `unix://${SOCKET}` }, 2_000);

/** Whether an engine, or what should name one, was chosen by the person. */
const isChosen = ({ cause }: ServiceMissing): boolean =>
  cause instanceof EngineSettingWrong || engineAddress().from !== "default";

/** Installs the daemon if it is missing and that is allowed. @throws ServiceMissing if it cannot be installed or started */
async function requireDaemon({ say, mayInstall }: DockerOptions, cause: ServiceMissing): Promise<void> {
  const isRoot = process.getuid?.() === 0;
  const isInstalled = findOnPath("dockerd") !== undefined;
  const refused = (reason: string) =>
    new ServiceMissing({
      service: "Docker engine",
      address: SOCKET,
      problem: "is not available",
      reason,
      fix: `As root: apt-get install ${PACKAGES.join(" ")}, then start dockerd. Or set DOCKER_HOST to a running engine.`,
      cause,
    });
  if (isInstalled && isRoot) return;
  if (isInstalled) throw refused("the Docker daemon is not running, and starting it requires root");
  if (!mayInstall) throw refused("it is not installed, and LONGHAUL_NO_INSTALL is set");
  if (!isRoot) throw refused("it is not installed, and installing it requires root");
  if (!isDebian() || findOnPath("apt-get") === undefined)
    throw refused("it is not installed, and this is not Debian or Ubuntu");
  const what = `Installing Docker with apt-get (${PACKAGES.join(", ")}): no engine was found`;
  await aptInstall(say, what, PACKAGES).catch((error: { stderr?: string }) => {
    throw refused(`apt-get failed: ${error.stderr?.trim().split("\n").at(-1) ?? ""}`);
  });
}

function isDebian(): boolean {
  try {
    return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync("/etc/os-release", "utf8"));
  } catch {
    return false;
  }
}
