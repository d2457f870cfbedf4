/**
 * The limit on processes for a build's containers, which the engine's builder does not offer: each is given it as soon as it starts.
 * They are known by the size of their shared memory, the only mark that the builder passes on to them.
 */
import { randomInt } from "node:crypto";
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import type { SandboxSpec } from "../spec.ts";
import { statusOf, unless } from "./docker-errors.ts";
import { SHM_BYTES } from "./profile.ts";

const MAX_MARK = 2 ** 24;

export interface ProcessLimits {
  /** For the build's option `shmsize`, in bytes. */
  readonly mark: number;
  /** Why a container could not be limited; it was removed. */
  failed(): string | undefined;
  end(): void;
}

const isRunning = (container: Dockerode.Container): Promise<boolean> =>
  container.inspect().then(
    ({ State: state }) => state.Running,
    (error: unknown) => statusOf(error) !== 404,
  );

/** @throws SandboxUnavailable (retryable) if the engine does not answer */
export async function limitProcesses(docker: Dockerode, spec: SandboxSpec): Promise<ProcessLimits> {
  // Whole kilobytes: some kernels round to pages.
  const mark = SHM_BYTES + 4096 * randomInt(1, MAX_MARK / 4096);
  let failure: string | undefined;
  const limit = async (id: string) => {
    const container = docker.getContainer(id);
    try {
      const { HostConfig: host } = await container.inspect();
      if (host.ShmSize !== mark || host.PidsLimit === spec.pids) return;
      await container.update({ PidsLimit: spec.pids });
    } catch (error) {
      // It has ended already, or is another program's and was removed. The engine says the former in several ways.
      if ([404, 409].includes(statusOf(error) ?? 0) || !(await isRunning(container))) return;
      failure = `the number of its processes cannot be limited (${reasonOf(error)})`;
      await unless([404, 409], () => container.remove({ force: true, v: true })).catch(() => undefined);
    }
  };
  const events = await unless([], () =>
    docker.getEvents({ filters: { type: ["container"], event: ["start"] } }),
  );
  let rest = "";
  events?.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { id } = line.trim() === "" ? {} : (JSON.parse(line) as { readonly id?: string });
      if (id !== undefined) void limit(id);
    }
  });
  let isOver = false;
  const unheard = () => {
    if (!isOver) failure ??= "the number of its processes cannot be limited: the engine's events ended";
  };
  if (events === undefined) unheard();
  events?.on("error", unheard).on("end", unheard);
  return {
    mark,
    failed: () => failure,
    end: () => {
      isOver = true;
      if (events !== undefined && "destroy" in events)
        (events as NodeJS.ReadableStream & { destroy(): void }).destroy();
    },
  };
}
