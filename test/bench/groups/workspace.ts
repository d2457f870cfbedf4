/** What a person waits for with a project of their own: its sandbox, its files in and out. Needs Docker alone. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import { packWorkspace, type StoredPack } from "../../../activities/store/workspace-pack.ts";
import { sandboxSpec } from "../../../activities/sandbox/sandbox-host.ts";
import { restoreWorkspace } from "../../../activities/workspace/workspace.ts";
import { withMachine } from "../../../client/registries/session-registries.ts";
import { readFolder } from "../../../client/workspace/workspace-folder.ts";
import { chainOf } from "../../support/chain-of.ts";
import { saveWorkspace } from "../../support/save-workspace.ts";
import { median } from "../stats.ts";
import { atMost, type Figure, middleOf } from "../table.ts";

const FOLDERS = 500;
const FILES_EACH = 100;
const MIB = 2 ** 20;
/** The goal for a new sandbox until it answers. */
const READY_MS = 1_500;
/** Ours: what a person waits for without a doubt, and what a worker of 1 GB can spare. */
const IN_MS = 10_000;
const RESTORE_MS = 20_000;
const MAX_MIB = 400;

export async function measureWorkspace(options: { readonly quick: boolean }): Promise<Figure[]> {
  const host = createDockerHost({ docker: connectDocker(), name: "bench" });
  const folder = mkdtempSync(join(tmpdir(), "longhaul-bench-"));
  const sessions: string[] = [];
  const open = (settings: object = {}): Promise<Sandbox> => {
    const sessionId = `bench-${randomBytes(4).toString("hex")}`;
    sessions.push(sessionId);
    return host.open(sandboxSpec({ id: sessionId, config: configOf(settings) }));
  };
  try {
    return [
      await ready(open, options.quick ? 3 : 7),
      ...(await manyFiles(await open({ network: "none" }), join(folder, "many"))),
    ];
  } finally {
    for (const id of sessions) await host.remove(id);
    await host.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Open = (settings?: object) => Promise<Sandbox>;

/** As a session of a person on this machine has it. */
function configOf(settings: object): RunConfig {
  const { sandbox } = agentConfigSchema.parse({ sandbox: settings });
  return { sandbox: withMachine(sandbox, process.env, process.cwd()).sandbox } as RunConfig;
}

async function ready(open: Open, times: number): Promise<Figure> {
  const bridge: number[] = [];
  const none: number[] = [];
  for (let time = 0; time < times; time += 1) {
    bridge.push((await timed(() => open())).ms);
    none.push((await timed(() => open({ network: "none" }))).ms);
  }
  const note = `fastest ${Math.min(...bridge).toFixed(0)}; without a network ${median(none).toFixed(0)}`;
  return middleOf("a new sandbox on the bridge until it answers", bridge, { goal: atMost(READY_MS), note });
}

/** A project of 50,000 files: read from a folder, restored in a sandbox, saved whole, saved again after a change. */
async function manyFiles(sandbox: Sandbox, folder: string): Promise<Figure[]> {
  for (let at = 0; at < FOLDERS; at += 1) {
    mkdirSync(join(folder, `f${at}`), { recursive: true });
    for (let file = 0; file < FILES_EACH; file += 1)
      writeFileSync(join(folder, `f${at}`, `${file}.ts`), `export const n${file} = ${at};\n`.repeat(40));
  }
  const taken = await timed(async () => packWorkspace((await readFolder(folder)).files));
  const chain = () => chainOf(taken.result as StoredPack);
  const restored = await timed(() => restoreWorkspace(sandbox, chain()));
  const whole = await timed(() => saveWorkspace(sandbox, undefined));
  const { saved } = whole.result;
  if (saved === undefined) throw new Error("Nothing was saved.");
  await sandbox.files.write("f7/7.ts", Buffer.from("changed"));
  const small = await timed(() => saveWorkspace(sandbox, { manifest: saved.manifest, depth: 1 }));
  const all = [taken, restored, whole, small];
  const figure = (name: string, value: number, goal: number, note?: string): Figure => ({
    name: `${FOLDERS * FILES_EACH} files: ${name}`,
    value,
    unit: "ms",
    n: 1,
    goal: atMost(goal),
    note,
  });
  const inMib = (bytes: number) => (bytes / MIB).toFixed(1);
  const memory = all.map(({ moreMib }) => moreMib.toFixed(0)).join(", ");
  const blockedMs = Math.max(...all.slice(1).map((timing) => timing.blockedMs));
  return [
    figure("read from a folder and packed", taken.ms, IN_MS, `${inMib(taken.result.pack.byteLength)} MiB`),
    figure("restored in a sandbox", restored.ms, RESTORE_MS),
    figure("saved whole", whole.ms, IN_MS, `a change of one ${small.ms.toFixed(0)} ms`),
    {
      ...figure("most memory of any of these", Math.max(...all.map(({ moreMib }) => moreMib)), MAX_MIB),
      unit: "MiB",
      note: `in, restore, save, change: ${memory}`,
    },
    figure(
      "longest time without a heartbeat",
      blockedMs,
      1_000,
      "of the worker's thread, restoring and saving",
    ),
  ];
}

interface Timed<T> {
  readonly result: T;
  readonly ms: number;
  /** The most that the process took more than at the beginning. */
  readonly moreMib: number;
  /** The longest time that its thread was busy without a break. */
  readonly blockedMs: number;
}

async function timed<T>(body: () => Promise<T>): Promise<Timed<T>> {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let most = before;
  const look = () => (most = Math.max(most, process.memoryUsage().rss));
  const timer = setInterval(look, 20);
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const began = performance.now();
  try {
    const result = await body();
    const ms = performance.now() - began;
    look();
    return { result, ms, moreMib: (most - before) / MIB, blockedMs: delay.max / 1e6 };
  } finally {
    clearInterval(timer);
    delay.disable();
  }
}
