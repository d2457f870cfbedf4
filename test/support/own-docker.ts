/** A test's own Docker engine, with the sandbox image in it, which the test stops and restarts. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Dockerode from "dockerode";
import { probeDocker } from "../../temporal/probe.ts";
import { findOnPath, run } from "../../client/setup/processes.ts";
import { ownProcess } from "./own-process.ts";

export interface OwnDocker {
  /** For DOCKER_HOST. */
  readonly host: string;
  readonly docker: Dockerode;
  /** `end`: an orderly stop, which also stops its containers; `kill`: kill -9 of the daemon. */
  stop(how?: "end" | "kill"): Promise<void>;
  start(): Promise<void>;
  /** It keeps its connections and answers nothing; until `thaw`. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

const START_MS = 60_000;

/** Why a second engine cannot run here; undefined if it can. */
export function noOwnDocker(): string | undefined {
  if (process.platform !== "linux") return "a second Docker engine needs Linux";
  if (process.getuid?.() !== 0) return "a second Docker engine needs root";
  const missing = ["dockerd", "unshare"].find((program) => findOnPath(program) === undefined);
  return missing === undefined ? undefined : `${missing} is not on PATH`;
}

/** @param image copied from the engine that the other tests use */
export async function startOwnDocker(image: string): Promise<OwnDocker> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-docker-"));
  const socketPath = join(home, "docker.sock");
  const host = `unix://${socketPath}`;
  const program = {
    // In its own network namespace: in the machine's, `--bridge=none` would delete the bridge docker0 of the
    // shared engine.
    command: "unshare",
    args: [
      "--net",
      "dockerd",
      `--host=${host}`,
      `--data-root=${join(home, "data")}`,
      `--exec-root=${join(home, "exec")}`,
      `--pidfile=${join(home, "pid")}`,
      "--bridge=none",
      "--iptables=false",
    ],
    log: join(home, "dockerd.log"),
  };
  const daemon = ownProcess(
    "the second Docker engine",
    program,
    () => probeDocker({ DOCKER_HOST: host }, 1_000),
    START_MS,
  );
  const start = async () => {
    // Without a process that reaps orphans, a killed daemon's containerd stays a zombie, and the next daemon waits for it.
    rmSync(join(home, "exec", "containerd", "containerd.pid"), { force: true });
    await daemon.start();
  };
  const stop = (how: "end" | "kill" = "end") =>
    daemon.stop({ signal: how === "end" ? "SIGTERM" : "SIGKILL", graceMs: 30_000 });
  await start();
  const docker = new Dockerode({ socketPath });
  await copyImage(image, docker);
  return {
    host,
    docker,
    start,
    stop,
    freeze: () => void process.kill(daemon.pid(), "SIGSTOP"),
    thaw: () => void process.kill(daemon.pid(), "SIGCONT"),
    async close() {
      for (const { Id } of await docker.listContainers({ all: true }).catch(() => []))
        await docker
          .getContainer(Id)
          .remove({ force: true, v: true })
          .catch(() => undefined);
      await stop();
      // A killed daemon leaves its mounts behind.
      for (const mount of mountsUnder(home)) await run("umount", ["--lazy", mount]).catch(() => undefined);
      rmSync(home, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** Innermost first. */
function mountsUnder(folder: string): string[] {
  return readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((mount) => mount.startsWith(`${folder}/`))
    .toReversed();
}

/** Streamed from one engine to the other: 17 s for 370 MB, measured on two cores. */
async function copyImage(image: string, to: Dockerode): Promise<void> {
  const loading = await to.loadImage(await new Dockerode().getImage(image).get());
  await new Promise<void>((resolve, reject) => {
    to.modem.followProgress(loading, (error) => (error ? reject(error) : resolve()));
  });
}
