/** Real sandboxes for a test file: sessions with unique ids, removed afterwards in any case. */
import { randomBytes } from "node:crypto";
import Dockerode from "dockerode";
import { inject } from "vitest";
import { createDockerHost, type DockerHostOptions } from "../../activities/sandbox/docker/docker.ts";
import type { CommandState, Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { SandboxHost, SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { eventually } from "./eventually.ts";
import { perFile } from "./per-file.ts";

export interface TestSandboxes {
  readonly docker: Dockerode;
  /** The host that most tests use; `newHost` is another worker's. */
  readonly host: SandboxHost;
  newHost(): SandboxHost;
  /** A host whose engine refuses every container with a network capability. */
  lame(): { readonly host: SandboxHost; readonly messages: readonly string[] };
  /** A spec with its own session. */
  spec(changes?: Partial<SandboxSpec>): SandboxSpec;
  /** Ids, on this machine, of the processes that copy between a worker and the sandbox's supervisor. */
  relays(sandbox: Sandbox): Promise<readonly number[]>;
  dispose(): Promise<void>;
}

/** @param egress the proxy of this file, if it needs one with its own names @param keys what its sandboxes may use */
export function createTestSandboxes(
  egress?: DockerHostOptions["egress"],
  keys?: DockerHostOptions["keys"],
): TestSandboxes {
  const docker = new Dockerode();
  const run = randomBytes(4).toString("hex");
  const hosts: SandboxHost[] = [];
  const sessions: string[] = [];
  const newHost = (): SandboxHost => {
    const host = createDockerHost({ docker, name: "test", egress, keys });
    hosts.push(host);
    return host;
  };
  const host = newHost();
  return {
    docker,
    host,
    newHost,
    lame() {
      const engine = new Dockerode();
      const create = engine.createContainer.bind(engine) as Dockerode["createContainer"];
      engine.createContainer = ((options: Dockerode.ContainerCreateOptions) =>
        options.HostConfig?.CapAdd?.includes("NET_ADMIN") === true
          ? Promise.reject(Object.assign(new Error("no helper here"), { statusCode: 403 }))
          : create(options)) as Dockerode["createContainer"];
      const messages: string[] = [];
      const lameHost = createDockerHost({ docker: engine, name: "lame", say: (line) => messages.push(line) });
      hosts.push(lameHost);
      return { host: lameHost, messages };
    },
    spec(changes = {}) {
      const sessionId = `test-${run}-${sessions.length}`;
      sessions.push(changes.sessionId ?? sessionId);
      const image = inject("sandboxImage");
      return {
        sessionId,
        image,
        network: "none",
        memoryBytes: 512 * 2 ** 20,
        cpus: 2,
        pids: 128,
        ...changes,
      };
    },
    async relays(sandbox) {
      const top = await docker.getContainer(sandbox.container).top({ ps_args: "-eo pid,args" });
      const found = (top.Processes as string[][]).filter((row) => row.join(" ").includes("LONGHAUL_RELAY"));
      return found.map(([pid]) => Number(pid));
    },
    async dispose() {
      await Promise.all(sessions.map((session) => host.remove(session)));
      await Promise.all(hosts.map((sandboxHost) => sandboxHost.close()));
    },
  };
}

/** Sandboxes of a test file. @param egress as above */
export function useTestSandboxes(egress?: DockerHostOptions["egress"]): TestSandboxes {
  return perFile(
    async () => createTestSandboxes(egress),
    (sandboxes) => sandboxes.dispose(),
  );
}

/** One sandbox for all tests of a file. */
export const useSandbox = (sandboxes: TestSandboxes, changes?: Partial<SandboxSpec>): Sandbox =>
  perFile(
    () => sandboxes.host.open(sandboxes.spec(changes)),
    async () => {},
  );

let commands = 0;

/** A new unique id. */
export const newId = (): string => `c${++commands}`;

export interface Ran {
  readonly state: CommandState;
  readonly out: string;
  readonly err: string;
}

/** Runs a bash script to its end. */
export async function bash(sandbox: Sandbox, script: string, timeoutMs = 20_000): Promise<Ran> {
  const id = newId();
  const state = await sandbox.run({ id, argv: ["bash", "-c", script], timeoutMs });
  const read = async (stream: "out" | "err"): Promise<string> =>
    Buffer.from(await sandbox.read(id, stream, 0, 1_048_576)).toString("utf8");
  return { state, out: await read("out"), err: await read("err") };
}

/** Runs a script over the workspace of a sandbox as root, from another container. @throws Error with its exit code */
export async function asRoot({ docker }: TestSandboxes, sandbox: Sandbox, script: string): Promise<void> {
  const container = await docker.createContainer({
    Image: inject("sandboxImage"),
    Entrypoint: ["sh", "-ec", script],
    User: "0:0",
    WorkingDir: "/workspace",
    HostConfig: { NetworkMode: "none", Binds: [`${sandbox.container}:/workspace`] },
  });
  try {
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    if (StatusCode !== 0) throw new Error(`As root, ${script} ended with ${StatusCode}.`);
  } finally {
    await container.remove({ force: true });
  }
}

/** Checks every 20 ms until the condition holds. @throws Error after `timeoutMs` */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 5_000,
): Promise<void> {
  await eventually(what, condition, timeoutMs);
}
