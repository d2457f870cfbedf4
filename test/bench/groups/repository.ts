/** What a large repository costs a session: its base, a sandbox on it, saves; beside plain Git and `cp`. Needs Docker alone. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentIdentity } from "../../../activities/config/commit-settings.ts";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../../activities/sandbox/docker/docker.ts";
import { imageNamed } from "../../../activities/config/sandbox-settings.ts";
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import { beginBranch } from "../../../activities/git/sandbox-git.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { fetchForSession, layOut } from "../../../activities/git/lay-out.ts";
import { makeLargeRepository } from "../../support/large-repository.ts";
import { onRepository } from "../../support/remotes.ts";
import { saveWorkspace } from "../../support/save-workspace.ts";
import { bash } from "../../support/test-sandboxes.ts";
import { atMost, type Figure, middleOf } from "../table.ts";

const MIB = 2 ** 20;
const MEAN_BYTES = 10_000;
const ROUNDS = 5;

export async function measureRepository(options: { readonly quick: boolean }): Promise<Figure[]> {
  const files = options.quick ? 10_000 : 100_000;
  const folder = mkdtempSync(join(tmpdir(), "longhaul-bench-"));
  const host = createDockerHost({ docker: connectDocker(), name: "bench" });
  const key = randomBytes(8).toString("hex");
  const sessions: string[] = [];
  const image = imageNamed(process.env["SANDBOX_IMAGE"]);
  const limits = { image, network: "none" as const, memoryBytes: 2_048 * MIB, cpus: 2, pids: 512 };
  const open = (): Promise<Sandbox> => {
    const sessionId = `bench-${randomBytes(4).toString("hex")}`;
    sessions.push(sessionId);
    return host.open({ ...limits, sessionId, base: key });
  };
  try {
    const remote = join(folder, "remote.git");
    mkdirSync(remote);
    await makeLargeRepository(remote, { files, meanBytes: MEAN_BYTES });
    const plain = plainGit(remote, folder);
    const { bases } = host;
    if (bases === undefined || (await bases.unable(image)) !== undefined)
      throw new Error("This engine has no layers.");
    const access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: join(folder, "git") });
    const { repository } = onRepository(`file://${remote}`, { push: "never" });
    const signal = new AbortController().signal;
    let commit = "";
    const made = await ms(async () => {
      const fetched = await fetchForSession(access, repository, key, signal);
      ({ commit } = fetched.start);
      await bases.make(
        key,
        limits,
        async (sandbox) => {
          await layOut(access, sandbox, fetched, { repository, branch: undefined, signal });
          return { bytes: 0 };
        },
        signal,
      );
    });
    const beginMs: number[] = [];
    let sandbox: Sandbox | undefined;
    for (let round = 0; round < ROUNDS; round += 1)
      beginMs.push(
        await ms(async () => {
          sandbox = await open();
          await beginBranch(sandbox, {
            branch: `longhaul/${round}`,
            commit,
            author: agentIdentity(repository),
          });
          await bash(sandbox, "true");
        }),
      );
    if (sandbox === undefined) throw new Error("No sandbox was opened.");
    const name = (what: string) => `${files} files, ${plain.mib} MiB: ${what}`;
    return [
      { name: name("plain git clone"), value: plain.cloneMs, unit: "ms", n: 1 },
      { name: name("cp -a of the checkout"), value: plain.copyMs, unit: "ms", n: 1 },
      {
        name: name("its base, once a host"),
        value: made,
        unit: "ms",
        n: 1,
        note: "clone on the worker included",
      },
      middleOf(name("a session's sandbox on it, to the first command"), beginMs, { goal: atMost(5_000) }),
      ...(await saves(sandbox, name)),
    ];
  } finally {
    for (const id of sessions) await host.remove(id);
    await host.bases?.forget(key);
    await host.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function saves(sandbox: Sandbox, name: (what: string) => string): Promise<Figure[]> {
  const first = await costOf(sandbox, () => saveWorkspace(sandbox, undefined));
  const { saved } = first.result;
  if (saved === undefined) throw new Error("Nothing was saved.");
  const small: { readonly wallMs: number; readonly cpuMs: number; readonly bytes: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await bash(sandbox, `echo ${round} >> $(git ls-files | sed -n ${round + 1}p)`);
    const { result, ...cost } = await costOf(sandbox, () =>
      saveWorkspace(sandbox, { manifest: saved.manifest, depth: 1 }),
    );
    small.push({ ...cost, bytes: (result.saved?.pack.length ?? 0) + (result.saved?.manifest.length ?? 0) });
  }
  const disk = await bash(sandbox, "du -sm /run/longhaul-changes/up | cut -f1");
  return [
    middleOf(name("first save"), [first.wallMs], {
      goal: atMost(1_000),
      note: `${first.cpuMs.toFixed(0)} ms of processor in the sandbox`,
    }),
    middleOf(
      name("a small save, processor in the sandbox"),
      small.map(({ cpuMs }) => cpuMs),
      {
        goal: atMost(50),
        note: `median of ${middleOf(
          "",
          small.map(({ wallMs }) => wallMs),
        ).value?.toFixed(0)} ms in all, ${small.at(-1)?.bytes} bytes`,
      },
    ),
    { name: name("disk of a session"), value: Number(disk.out), unit: "MiB", n: 1, goal: atMost(50) },
  ];
}

function plainGit(remote: string, folder: string) {
  const [clone, copy] = [join(folder, "clone"), join(folder, "copy")];
  const run = (program: string, ...args: string[]): number => {
    const began = performance.now();
    execFileSync(program, args, { stdio: "ignore" });
    return performance.now() - began;
  };
  const cloneMs = run("git", "clone", "-q", "--no-local", remote, clone);
  const copyMs = run("cp", "-a", clone, copy);
  const mib = Number(String(execFileSync("du", ["-sm", clone])).split("\t")[0]);
  rmSync(copy, { recursive: true });
  rmSync(clone, { recursive: true });
  return { cloneMs, copyMs, mib };
}

async function ms(body: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await body();
  return performance.now() - began;
}

/** Time on the clock, and of the sandbox's processor. */
async function costOf<T>(sandbox: Sandbox, body: () => Promise<T>) {
  const before = await processorMs(sandbox);
  let result: T | undefined;
  const wallMs = await ms(async () => (result = await body()));
  return { result: result as T, wallMs, cpuMs: (await processorMs(sandbox)) - before };
}

async function processorMs(sandbox: Sandbox): Promise<number> {
  const { out } = await bash(
    sandbox,
    "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null",
  );
  const usage = /usage_usec (\d+)/.exec(out)?.[1];
  return usage === undefined ? Number(out.trim()) / 1e6 : Number(usage) / 1_000;
}
