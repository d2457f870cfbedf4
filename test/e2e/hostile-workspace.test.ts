/**
 * Workspaces that try to break saving, in real sandboxes: each is saved into Postgres, found unchanged, restored in
 * another sandbox, pulled, compared and reported. Time and memory are bounded, nothing is lost or left out silently, nothing
 * is executed, nothing outside the folder changes. The durations are printed at the end.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, statfsSync } from "node:fs";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { parse } from "yaml";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { restoreWorkspace } from "../../activities/workspace/workspace.ts";
import { checkpointChain, latestCheckpoint, readWorkspace } from "../../activities/store/checkpoints.ts";
import { gather } from "../../client/report/report-sources.ts";
import { reportPage } from "../../client/report/report-page.ts";
import { diffWorkspaces } from "../../client/workspace/workspace-diff.ts";
import { writeWorkspace } from "../../client/workspace/write-workspace.ts";
import { fixtureText } from "../support/fixture-text.ts";
import { useTestSandboxes } from "../support/test-sandboxes.ts";
import { saveWorkspace } from "../support/save-workspace.ts";
import { newSessionIn, saveOf } from "../support/session-in-sandbox.ts";
import { useDatabase } from "../support/test-database.ts";

interface Hostile {
  readonly fill: string;
  readonly skipped?: { readonly named: string; readonly removal: string };
  readonly beside?: string;
}

/** Created by programs that a repository names. */
const MARKER = join(tmpdir(), `longhaul-was-run-${process.pid}`);
const HOSTILE = parse(fixtureText("hostile-workspaces.yaml").replaceAll("{{MARKER}}", MARKER)) as Readonly<
  Record<string, Hostile>
>;
const TOOLS = fixtureText("programs/hostile-tools.py");
const HASH = fixtureText("programs/hostile-hash.py");

const sandboxes = useTestSandboxes();
const database = useDatabase(3);
afterAll(() => console.log(table()));

const rows: (readonly string[])[] = [];

it.each(Object.entries(HOSTILE))(
  "a hostile workspace of %s is saved, restored, pulled and compared, within bounds",
  async (name, hostile) => {
    const [sandbox, other] = await Promise.all([
      sandboxes.host.open(sandboxes.spec()),
      sandboxes.host.open(sandboxes.spec()),
    ]);
    const session = await newSessionIn(sandbox, database.store);
    const saveFiles = saveOf(sandbox, database.store);
    await python(sandbox, TOOLS + hostile.fill);
    if (hostile.beside !== undefined)
      await sandbox.start({ id: "beside", argv: ["python3", "-c", TOOLS + hostile.beside] });
    const save = await measured(() => saveFiles(session, 1));
    if (hostile.beside !== undefined) {
      await python(sandbox, `open("/tmp/stop", "w")`);
      expect(await sandbox.wait("beside", { timeoutMs: 20_000 })).toMatchObject({
        kind: "exited",
        exitCode: 0,
      });
      await saveFiles(session, 2);
    }
    const { db } = database.store;
    const latest = await latestCheckpoint(db, session.id);
    const again = await measured(() => saveWorkspace(sandbox, latest));
    expect(again.result.saved).toBeUndefined();
    const named = again.result.skipped.map(({ path, reason }) => `${path} ${reason}`);
    if (hostile.skipped === undefined) expect(named).toEqual([]);
    else expect(named).toEqual([expect.stringContaining(hostile.skipped.named)]);
    const restore = await measured(async () =>
      restoreWorkspace(other, await checkpointChain(db, latest?.id ?? 0)),
    );
    expect(
      (await saveWorkspace(other, { manifest: restore.result.manifest, depth: 1 })).saved,
    ).toBeUndefined();
    await python(sandbox, TOOLS + (hostile.skipped?.removal ?? ""));
    const [was, is] = await Promise.all([sandbox, other].map((place) => python(place, TOOLS + HASH)));
    expect(is).toBe(was);
    const worker = { save, again, restore };
    const all = { ...worker, ...(await client(session.id)) };
    rows.push([
      name,
      String(was).split(" ", 1)[0] ?? "",
      ...Object.values(all).map((measure) => measure.text),
    ]);
    // Each of the 200,000 files is created on this machine, too.
    for (const [what, measure] of Object.entries(all)) expect(measure.ms, what).toBeLessThan(240_000);
    for (const [what, measure] of Object.entries(worker)) {
      expect(measure.cpuMs, what).toBeLessThan(5_000);
      expect(measure.grownMb, what).toBeLessThan(400);
    }
  },
  400_000,
);

const run = promisify(execFile);

/** In memory if there is room: a disk's journal makes 200,000 files cost five times the CPU. */
function roomyFolder(): string {
  const memory = "/dev/shm";
  const { bavail, bsize } = existsSync(memory) ? statfsSync(memory) : { bavail: 0, bsize: 0 };
  return bavail * bsize > 2 ** 30 ? memory : tmpdir();
}

/** What a person does with the session's files: `pull` reads and writes them. */
async function client(sessionId: string) {
  const { store } = database;
  const read = await measured(async () => (await readWorkspace(store.db, sessionId)) ?? []);
  const files = read.result;
  const around = await realpath(await mkdtemp(join(roomyFolder(), "longhaul-hostile-")));
  const folder = join(around, "pulled");
  try {
    const write = await measured(() => writeWorkspace(files, folder));
    const written = write.result;
    const left = new Set([...written.skipped, ...written.unsafe]);
    const missing = files.filter(({ kind, path }) => kind !== "folder" && left.has(path.toWellFormed()));
    // A repository's configuration is replaced by a safe one, and the dropped settings are listed.
    const there = files.filter(({ kind }) => kind !== "folder").length - missing.length;
    expect(written.files).toBe(there);
    expect(await readdir(around)).toEqual(["pulled"]);
    await expectInside(folder, folder);
    await run("git", ["-C", folder, "status"], { env: { PATH: process.env["PATH"], HOME: around } }).catch(
      () => undefined,
    );
    expect(existsSync(MARKER)).toBe(false);
    const diff = await measured(async () => diffWorkspaces([], files, { binaries: "bytes" }));
    const report = await measured(async () => reportPage(await gather({ store }, sessionId)));
    expect(report.result).toContain("</html>");
    return { read, write, diff, report };
  } finally {
    await rm(around, { recursive: true, force: true });
  }
}

/** No link in a folder leads out of it. */
async function expectInside(folder: string, root: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await expectInside(path, root);
    if (!entry.isSymbolicLink()) continue;
    const end = await realpath(path).catch(() => root);
    expect(`${end}/`.startsWith(`${root}/`), path).toBe(true);
  }
}

async function python(sandbox: Sandbox, program: string): Promise<string> {
  const id = randomUUID();
  const state = await sandbox.run({ id, argv: ["python3", "-c", program], timeoutMs: 200_000 });
  if (state.kind !== "exited" || state.exitCode !== 0)
    throw new Error(
      `${JSON.stringify(state)}: ${Buffer.from(await sandbox.read(id, "err", 0, 2_000)).toString()}`,
    );
  return Buffer.from(await sandbox.read(id, "out", 0, 1_000)).toString();
}

interface Measured<T> {
  readonly result: T;
  readonly ms: number;
  /** Of this process, which acts as the worker. */
  readonly cpuMs: number;
  readonly grownMb: number;
  readonly text: string;
}

async function measured<T>(body: () => Promise<T>): Promise<Measured<T>> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const rss = (): number => process.memoryUsage.rss() / 2 ** 20;
  const [beganMs, cpu, before] = [performance.now(), process.cpuUsage(), rss()];
  let most = before;
  const sampling = setInterval(() => (most = Math.max(most, rss())), 20);
  delay.enable();
  const result = await body().finally(() => clearInterval(sampling));
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  const [ms, cpuMs, grownMb] = [performance.now() - beganMs, (user + system) / 1_000, most - before];
  const text = `${(ms / 1_000).toFixed(1)} s, ${cpuMs.toFixed(0)} ms, ${(delay.max / 1e6).toFixed(0)} ms, ${grownMb.toFixed(0)} MB`;
  return { result, ms, cpuMs, grownMb, text };
}

function table(): string {
  const head = ["workspace", "entries", "save", "again", "restore", "read", "write", "diff", "report"];
  const lines = [head, ...rows].map((row) => row.join(" | "));
  return ["Each: time, the worker's processor time, its longest pause, its memory's growth", ...lines].join(
    "\n",
  );
}
