/**
 * A command that does nothing, in a session's sandbox, against `docker exec` of the same in the same sandbox; and a save of
 * a small change in a workspace of 5,000 files: what a step that changed a file costs in addition.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import type { WorkspaceBase } from "../../../activities/workspace/workspace.ts";
import { saveWorkspace } from "../../support/save-workspace.ts";
import type { Stand } from "../stand/stand.ts";
import { median, quantile } from "../stats.ts";
import { atMost, type Figure, middleOf, ratioAtMost } from "../table.ts";
import type { Scale } from "./group.ts";

const COMMANDS = 100;
const EXECS = 15;
const SAVES = 15;
const FILL =
  'for d in $(seq 50); do mkdir -p f$d; for f in $(seq 100); do echo "file $d $f, which has some content of its own" > f$d/$f.txt; done; done';

export async function measureSandbox(stand: Stand, scale: Scale): Promise<Figure[]> {
  const docker = connectDocker();
  const host = createDockerHost({ docker, name: "bench" });
  const sessionId = `bench-sandbox-${randomBytes(4).toString("hex")}`;
  const limits = { memoryBytes: 512 * 2 ** 20, cpus: 2, pids: 128 };
  try {
    const opening = performance.now();
    const sandbox = await host.open({ sessionId, image: stand.image, network: "none", ...limits });
    const openMs = performance.now() - opening;
    return [
      ...(await commands(docker, sandbox, scale.rounds)),
      { name: "a new sandbox until it answers", value: openMs, unit: "ms", n: 1 },
      await saves(sandbox),
    ];
  } finally {
    await host.remove(sessionId);
    await host.close();
  }
}

async function commands(docker: Dockerode, sandbox: Sandbox, rounds: number): Promise<Figure[]> {
  const argv = ["true"];
  const ran: number[] = [];
  const two: number[] = [];
  const exec: number[] = [];
  const perRound = Math.ceil(COMMANDS / rounds);
  for (let round = 0; round < rounds; round += 1) {
    for (let i = 0; i < perRound; i += 1)
      ran.push(await took(() => sandbox.run({ id: `r${round}-${i}`, argv })));
    for (let i = 0; i < perRound; i += 1)
      two.push(
        await took(async () => {
          await sandbox.start({ id: `w${round}-${i}`, argv });
          await sandbox.wait(`w${round}-${i}`);
        }),
      );
    for (let i = 0; i < Math.ceil(EXECS / rounds); i += 1)
      exec.push(await took(() => execTrue(docker, sandbox.container)));
  }
  return [
    middleOf("a no-op command in the sandbox", ran, {
      goal: atMost(8),
      note: `p95 ${quantile(ran, 0.95).toFixed(1)}; start and wait apart ${median(two).toFixed(1)}`,
    }),
    middleOf("the same against docker exec", exec, {
      ratio: median(ran) / median(exec),
      goal: ratioAtMost(0.2),
      note: "measured: docker exec; ratio of ours to it",
    }),
  ];
}

async function took(body: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await body();
  return performance.now() - began;
}

async function execTrue(docker: Dockerode, container: string): Promise<void> {
  const exec = await docker.getContainer(container).exec({ Cmd: ["true"], AttachStdout: true });
  const stream = await exec.start({});
  await new Promise<void>((resolve, reject) => {
    stream.on("end", resolve).on("error", reject).resume();
  });
  await exec.inspect();
}

async function saves(sandbox: Sandbox): Promise<Figure> {
  await sandbox.run({ id: "fill", argv: ["bash", "-c", FILL], timeoutMs: 60_000 });
  let base: WorkspaceBase | undefined;
  const save = () =>
    took(async () => {
      const { saved } = await saveWorkspace(sandbox, base);
      if (!saved) throw new Error("Nothing was saved.");
      base = { manifest: saved.manifest, depth: saved.whole ? 1 : (base?.depth ?? 0) + 1 };
    });
  const wholeMs = await save();
  const small: number[] = [];
  const none: number[] = [];
  for (let i = 0; i < SAVES; i += 1) {
    await sandbox.files.write(`f${(i % 50) + 1}/7.txt`, Buffer.from(`changed ${i}`));
    // A model answers in between; a save that began within the same tick would look twice.
    await sleep(30);
    small.push(await save());
    none.push(await took(() => saveWorkspace(sandbox, base)));
  }
  return middleOf("save of a small change in 5,000 files", small, {
    goal: atMost(150),
    note: `p95 ${quantile(small, 0.95).toFixed(0)}; if nothing changed ${median(none).toFixed(0)}; the whole ${wholeMs.toFixed(0)}; in parallel with the next model step`,
  });
}
