/** A command that does nothing, in a session's sandbox, against `docker exec` of the same in the same sandbox. */
import { randomBytes } from "node:crypto";
import type Dockerode from "dockerode";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import type { Stand } from "../stand/stand.ts";
import { median, quantile } from "../stats.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";
import { measureSaves } from "./saves.ts";

const COMMANDS = 100;
const EXECS = 15;
const SAVES = 15;

export async function measureSandbox(stand: Stand, scale: Scale): Promise<Figure[]> {
  const docker = connectDocker();
  const host = createDockerHost({ docker, name: "bench" });
  const sessionId = `bench-sandbox-${randomBytes(4).toString("hex")}`;
  try {
    const opening = performance.now();
    const sandbox = await host.open({
      sessionId,
      image: stand.image,
      network: "none",
      memoryBytes: 512 * 2 ** 20,
      cpus: 2,
      pids: 128,
    });
    const openMs = performance.now() - opening;
    const ran: number[] = [];
    const two: number[] = [];
    const exec: number[] = [];
    const perRound = Math.ceil(COMMANDS / scale.rounds);
    for (let round = 0; round < scale.rounds; round += 1) {
      for (let i = 0; i < perRound; i += 1) ran.push(await runTrue(sandbox, `r${round}-${i}`));
      for (let i = 0; i < perRound; i += 1) two.push(await startAndWait(sandbox, `w${round}-${i}`));
      for (let i = 0; i < Math.ceil(EXECS / scale.rounds); i += 1)
        exec.push(await execTrue(docker, sandbox.container));
    }
    return [
      {
        name: "a no-op command in the sandbox",
        value: median(ran),
        unit: "ms",
        n: ran.length,
        goal: { of: "value", atMost: 8 },
        note: `p95 ${quantile(ran, 0.95).toFixed(1)}; start and wait apart ${median(two).toFixed(1)}`,
      },
      {
        name: "the same against docker exec",
        value: median(exec),
        unit: "ms",
        n: exec.length,
        ratio: median(ran) / median(exec),
        goal: { of: "ratio", atMost: 0.2 },
        note: "measured: docker exec; ratio of ours to it",
      },
      { name: "a new sandbox until it answers", value: openMs, unit: "ms", n: 1 },
      ...(await measureSaves(sandbox, SAVES)),
    ];
  } finally {
    await host.remove(sessionId);
    await host.close();
  }
}

async function took(body: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await body();
  return performance.now() - began;
}

function runTrue(sandbox: Sandbox, id: string): Promise<number> {
  return took(() => sandbox.run({ id, argv: ["true"] }));
}

function startAndWait(sandbox: Sandbox, id: string): Promise<number> {
  return took(async () => {
    await sandbox.start({ id, argv: ["true"] });
    await sandbox.wait(id);
  });
}

function execTrue(docker: Dockerode, container: string): Promise<number> {
  return took(async () => {
    const exec = await docker.getContainer(container).exec({ Cmd: ["true"], AttachStdout: true });
    const stream = await exec.start({});
    await new Promise<void>((resolve, reject) => {
      stream.on("end", resolve).on("error", reject).resume();
    });
    await exec.inspect();
  });
}
