/** What a person waits for with a project of their own: its sandbox, its files in and out, its packages. Needs Docker alone. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { promisify } from "node:util";
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import type { SandboxHost } from "../../../activities/sandbox/sandbox-host.ts";
import { packWorkspace, type StoredPack } from "../../../activities/store/workspace-pack.ts";
import { sandboxSpec } from "../../../activities/sandbox/sandbox-spec.ts";
import { restoreWorkspace } from "../../../activities/workspace/workspace.ts";
import { withMachine } from "../../../client/registries/session-registries.ts";
import { readFolder } from "../../../client/workspace/workspace-folder.ts";
import { chainOf } from "../../support/chain-of.ts";
import { saveWorkspace } from "../../support/save-workspace.ts";
import { median } from "../stats.ts";
import type { Figure } from "../table.ts";

const FOLDERS = 500;
const FILES_EACH = 100;
const MIB = 2 ** 20;
/** Source: issue 13, 8. */
const READY_MS = 1_500;
const INSTALL_RATIO = 1.3;
/** Ours: what a person waits for without a doubt, and what a worker of 1 GB can spare. */
const IN_MS = 10_000;
const RESTORE_MS = 20_000;
const MAX_MIB = 400;
const PACKAGE = { name: "bench", version: "1.0.0", dependencies: { express: "4.21.2", typescript: "5.9.3" } };
const run = promisify(execFile);

export async function measureWorkspace(options: { readonly quick: boolean }): Promise<Figure[]> {
  const host = createDockerHost({ docker: connectDocker(), name: "bench" });
  const folder = mkdtempSync(join(tmpdir(), "longhaul-bench-"));
  const sessions: string[] = [];
  const open = (settings: object = {}): Promise<Sandbox> => {
    const sessionId = `bench-${randomBytes(4).toString("hex")}`;
    sessions.push(sessionId);
    return host.open(sandboxSpec(sessionId, configOf(settings)));
  };
  try {
    return [
      ...(await ready(open, options.quick ? 3 : 7)),
      ...(await manyFiles(await open({ network: "none" }), join(folder, "many"))),
      ...(await install(host, open, join(folder, "project"), options.quick ? 2 : 5)),
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

async function ready(open: Open, times: number): Promise<Figure[]> {
  const bridge: number[] = [];
  const none: number[] = [];
  for (let time = 0; time < times; time += 1) {
    bridge.push((await timed(() => open())).ms);
    none.push((await timed(() => open({ network: "none" }))).ms);
  }
  return [
    {
      name: "a new sandbox on the bridge until it answers",
      value: median(bridge),
      unit: "ms",
      n: bridge.length,
      goal: { of: "value", atMost: READY_MS },
      note: `fastest ${Math.min(...bridge).toFixed(0)}; without a network ${median(none).toFixed(0)}`,
    },
  ];
}

/** A project of 50,000 files: read from a folder, restored in a sandbox, saved whole, saved again after a change. */
async function manyFiles(sandbox: Sandbox, folder: string): Promise<Figure[]> {
  for (let at = 0; at < FOLDERS; at += 1) {
    mkdirSync(join(folder, `f${at}`), { recursive: true });
    for (let each = 0; each < FILES_EACH; each += 1)
      writeFileSync(join(folder, `f${at}`, `${each}.ts`), `export const n${each} = ${at};\n`.repeat(40));
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
  const files = `${FOLDERS * FILES_EACH} files`;
  const at = (value: number) => ({ of: "value", atMost: value }) as const;
  const figure = (name: string, value: number, unit: string, goal: number, note = ""): Figure => ({
    name,
    value,
    unit,
    n: 1,
    goal: at(goal),
    note,
  });
  return [
    figure(
      `${files} read from a folder and packed`,
      taken.ms,
      "ms",
      IN_MS,
      `${mib(taken.result.pack.byteLength)} MiB`,
    ),
    figure(`${files} restored in a sandbox`, restored.ms, "ms", RESTORE_MS),
    figure(`${files} saved whole`, whole.ms, "ms", IN_MS, `a change of one ${small.ms.toFixed(0)} ms`),
    figure(
      `${files}: most memory of any of these`,
      Math.max(...all.map(({ moreMib }) => moreMib)),
      "MiB",
      MAX_MIB,
      `in, restore, save, change: ${all.map(({ moreMib }) => moreMib.toFixed(0)).join(", ")}`,
    ),
    figure(
      `${files}: longest time without a heartbeat`,
      Math.max(...all.slice(1).map(({ blockedMs }) => blockedMs)),
      "ms",
      1_000,
      "of the worker's thread, restoring and saving",
    ),
  ];
}

/** `npm ci` of a small project, packages in the cache, against the same outside, in turns. */
async function install(host: SandboxHost, open: Open, folder: string, times: number): Promise<Figure[]> {
  const name = "npm ci from the warm cache, in a sandbox";
  const outside = (...args: string[]) =>
    run("npm", [...args, "--no-audit", "--no-fund", "--cache", `${folder}-cache`], { cwd: folder });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify(PACKAGE));
  try {
    await outside("install", "--package-lock-only");
    await outside("ci");
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[1] ?? error.message) : String(error);
    return [{ name, value: undefined, unit: "ms", n: 0, note: `no package registry answers: ${reason}` }];
  }
  const sandbox = await open({ cache: true });
  const { files } = await readFolder(folder);
  await restoreWorkspace(sandbox, chainOf(await packWorkspace(files)));
  let number = 0;
  const inside = async (): Promise<number> => {
    const id = `ci${(number += 1)}`;
    const state = await sandbox.run({
      id,
      argv: ["bash", "-c", "rm -rf node_modules; time npm ci --no-audit --no-fund --loglevel=error"],
      env: { TIMEFORMAT: "%R" },
      mergeOutput: true,
    });
    const said = Buffer.from(await sandbox.read(id, "out", 0, 10_000)).toString();
    if (state.kind !== "exited" || state.exitCode !== 0) throw new Error(`npm ci failed inside: ${said}`);
    return Number(said.trim().split("\n").at(-1)) * 1_000;
  };
  await inside();
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let time = 0; time < times; time += 1) {
    rmSync(join(folder, "node_modules"), { recursive: true, force: true });
    theirs.push((await timed(() => outside("ci", "--loglevel=error"))).ms);
    ours.push(await inside());
  }
  const { stdout: version } = await run("npm", ["--version"]);
  return [
    {
      name,
      value: median(ours),
      unit: "ms",
      n: ours.length,
      ratio: median(ours) / median(theirs),
      goal: { of: "ratio", atMost: INSTALL_RATIO },
      note: `outside ${median(theirs).toFixed(0)} ms, with npm ${version.trim()}; host ${host.name}`,
    },
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

async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let most = before;
  const look = () => (most = Math.max(most, process.memoryUsage().rss));
  const timer = setInterval(look, 20);
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const began = performance.now();
  try {
    const result = await work();
    const ms = performance.now() - began;
    look();
    return { result, ms, moreMib: (most - before) / MIB, blockedMs: delay.max / 1e6 };
  } finally {
    clearInterval(timer);
    delay.disable();
  }
}

const mib = (bytes: number): string => (bytes / MIB).toFixed(1);
