/** Saves and restores of repositories: what Git tracks is saved whatever it is called, and no absence is read as a deletion. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { prepareWork } from "../../activities/git/sandbox-git.ts";
import { unpackManifest, unpackMissing } from "../../activities/store/workspace-manifest.ts";
import { LIMITS } from "../../activities/workspace/save-limits.ts";
import { restoreWorkspace, runWorkspaceProgram } from "../../activities/workspace/workspace.ts";
import { chainOf } from "../support/chain-of.ts";
import { createFakeSandbox, type FakeSandbox } from "../support/fake-sandbox.ts";

/** Saves and restores are in Python, which every sandbox has and not every machine. */
const withPython = describe.skipIf(spawnSync("python3", ["--version"]).status !== 0);

async function newSandbox(): Promise<FakeSandbox> {
  const sandbox = await createFakeSandbox();
  onTestFinished(() => sandbox.dispose());
  return sandbox;
}

const git = (sandbox: FakeSandbox, ...args: readonly string[]): string =>
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...args], {
    cwd: sandbox.root,
    encoding: "utf8",
  }).trim();

async function put(sandbox: FakeSandbox, path: string, content = path): Promise<void> {
  await mkdir(dirname(join(sandbox.root, path)), { recursive: true });
  await writeFile(join(sandbox.root, path), content);
}

async function repository(sandbox: FakeSandbox, paths: readonly string[]): Promise<string> {
  git(sandbox, "init", "-q", "-b", "main");
  for (const path of paths) await put(sandbox, path);
  git(sandbox, "add", "-f", "-A");
  git(sandbox, "commit", "-q", "-m", "start");
  return git(sandbox, "rev-parse", "HEAD");
}

interface Save {
  readonly manifest: Uint8Array;
  readonly pack: Uint8Array;
}

interface Facts {
  readonly unchanged?: boolean;
  readonly packBytes: number;
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
}

/** @param limits of files and of all together, smaller than the product's so that the tests are fast */
async function save(
  sandbox: FakeSandbox,
  limits: Partial<typeof LIMITS> = {},
  before?: Save,
): Promise<Save & Pick<Facts, "skipped" | "unchanged">> {
  const order = { do: "save", hasBase: false, whole: false, limits: { ...LIMITS, ...limits } } as const;
  return runWorkspaceProgram(sandbox, order, [before?.manifest ?? new Uint8Array()], ({ output, answer }) => {
    const { packBytes, skipped, unchanged } = answer as unknown as Facts;
    const manifest = unchanged === true && before ? before.manifest : output.subarray(packBytes);
    return { manifest, pack: output.subarray(0, packBytes), skipped, unchanged: unchanged || undefined };
  });
}

async function restored(...saves: readonly [Save, ...Save[]]) {
  const sandbox = await newSandbox();
  return { sandbox, ...(await restoreWorkspace(sandbox, chainOf(...saves))) };
}

const author = { name: "Ada", email: "ada@example.org" };
const commit = { message: "The rest", author };

withPython("a saved repository", () => {
  it.each([
    ["of version 2", ["update-index", "--index-version", "2"]],
    ["of version 3", ["add", "-N", "later.txt"]],
    ["of version 4, with shortened paths", ["update-index", "--index-version", "4"]],
    ["in two parts", ["update-index", "--split-index"]],
  ])("comes back with what its index names in rebuilt folders, with an index %s", async (_what, change) => {
    const sandbox = await newSandbox();
    const paths = [
      "node_module",
      "node_modules/a/kept.js",
      "web/node_modulesx/b.js",
      "web/node_modules/kept.js",
    ];
    await repository(sandbox, paths);
    await put(sandbox, "later.txt");
    git(sandbox, ...change);
    await put(sandbox, "node_modules/untracked.js");
    const { sandbox: other } = await restored(await save(sandbox));
    for (const path of paths) expect(readFileSync(join(other.root, path), "utf8"), path).toBe(path);
    expect(existsSync(join(other.root, "node_modules/untracked.js"))).toBe(false);
  });

  it.each([
    ["borrows objects from outside", "objects", "echo $O/.git/objects > .git/objects/info/alternates"],
    ["has its folder outside", "folder", "mv .git $O/moved; echo gitdir: $O/moved > .git"],
    ["has its folder outside, by a link's name", "folder", "mv .git $O/moved; ln -s $O/moved .git"],
  ])("that %s of the workspace is kept as it was before, which is said", async (_what, kind, change) => {
    const [sandbox, outside] = [await newSandbox(), await newSandbox()];
    const start = await repository(sandbox, ["a.txt"]);
    await repository(outside, ["b.txt"]);
    const before = await save(sandbox);
    execFileSync("bash", ["-ec", change], { cwd: sandbox.root, env: { ...process.env, O: outside.root } });
    const after = await save(sandbox, {}, before);
    expect(after.skipped).toMatchObject([{ path: ".git", reason: "repository-as-before" }]);
    const { sandbox: other } = await restored(before, after);
    if (kind === "objects") expect(git(other, "fsck", "--strict")).toBe("");
    expect(git(other, "rev-parse", "HEAD")).toBe(start);
    // Without an earlier save there is nothing to keep.
    const { skipped } = await save(sandbox);
    expect(skipped).toMatchObject([{ path: ".git", reason: "repository" }]);
  });

  it("whose parts are all in the workspace is whole: worktrees, submodules, borrowed objects", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["a.txt"]);
    const script =
      "mkdir .git/modules; git worktree add -q side; git clone -q --shared . inner; git clone -q --separate-git-dir .git/modules/sub . sub";
    execFileSync("bash", ["-ec", script], { cwd: sandbox.root });
    expect((await save(sandbox)).skipped).toEqual([]);
  });

  it("comes back with every tracked path, whatever its folders are called", async () => {
    const name = fc.constantFrom("node_modules", ".venv", "__pycache__", "src", "a b", "ü", "x");
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => [...parts, "f.txt"].join("/"));
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(path, { minLength: 1, maxLength: 8 }), async (paths) => {
        const sandbox = await newSandbox();
        await repository(sandbox, paths);
        await put(sandbox, "node_modules/untracked/index.js");
        const { sandbox: other } = await restored(await save(sandbox));
        expect(git(other, "status", "--porcelain")).toBe("");
        expect(existsSync(join(other.root, "node_modules/untracked"))).toBe(false);
      }),
      { numRuns: 12 },
    );
  });

  it("comes back so in nested repositories and submodules, and with branches of any name", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["a.txt"]);
    git(sandbox, "init", "-q", "inner");
    await put(sandbox, "inner/node_modules/dep/index.js");
    git(sandbox, "-C", "inner", "add", "-f", "-A");
    git(sandbox, "-C", "inner", "commit", "-q", "-m", "inner");
    git(sandbox, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "./inner", "lib/sub");
    git(sandbox, "branch", "node_modules/fix");
    const { sandbox: other } = await restored(await save(sandbox));
    expect(git(other, "-C", "inner", "status", "--porcelain")).toBe("");
    expect(git(other, "-C", "lib/sub", "status", "--porcelain")).toBe("");
    expect(git(other, "branch", "--list", "node_modules/fix")).toBe("node_modules/fix");
    git(other, "fsck", "--strict");
  });

  it("keeps a deletion that the agent made, also in such a folder", async () => {
    const sandbox = await newSandbox();
    const base = await repository(sandbox, ["node_modules/a.js", "node_modules/b.js"]);
    const first = await save(sandbox);
    await rm(join(sandbox.root, "node_modules/b.js"));
    const { sandbox: other } = await restored(first, await save(sandbox, {}, first));
    expect(await prepareWork(other, { base, lfs: false, commit })).toMatchObject({ leftOutCount: 0 });
    expect(git(other, "show", "--format=", "--name-status")).toBe("D\tnode_modules/b.js");
  });

  it("gets a file that was too large for the save from Git's objects", async () => {
    const sandbox = await newSandbox();
    const base = await repository(sandbox, ["big.bin", "small"]);
    await writeFile(join(sandbox.root, "big.bin"), "B".repeat(5000));
    git(sandbox, "commit", "-q", "-a", "-m", "Grow");
    const saved = await save(sandbox, { fileBytes: 1000 });
    expect(saved.skipped).toMatchObject([{ path: "big.bin", reason: "too-large" }]);
    const { sandbox: other, notRestored } = await restored(saved);
    expect(notRestored).toEqual([]);
    expect(readFileSync(join(other.root, "big.bin"), "utf8")).toBe("B".repeat(5000));
    expect(await prepareWork(other, { base, lfs: false, commit })).not.toHaveProperty("committed");
  });

  it("names a file that Git cannot bring back; neither the agent's commit nor ours removes it", async () => {
    const sandbox = await newSandbox();
    const base = await repository(sandbox, ["a/big.bin", "small"]);
    await put(sandbox, ".gitattributes", "*.bin filter=locked\n");
    git(sandbox, "config", "filter.locked.clean", "cat");
    git(sandbox, "config", "filter.locked.smudge", "false");
    git(sandbox, "config", "filter.locked.required", "true");
    await put(sandbox, "a/big.bin", "B".repeat(5000));
    await put(sandbox, "unknown.bin", "U".repeat(5000));
    const first = await save(sandbox, { fileBytes: 1000 });
    const { sandbox: other, notRestored, manifest } = await restored(first);
    expect(notRestored).toEqual([
      { path: "a/big.bin", reason: "too-large" },
      { path: "unknown.bin", reason: "too-large" },
    ]);
    // What this sandbox saves has it no more than the first, and still counts it as nothing removed.
    const second = await save(other, {}, { manifest, pack: first.pack });
    const { sandbox: third } = await restored(first, second);
    await put(third, "small", "changed");
    git(third, "add", "-A");
    git(third, "commit", "-q", "-m", "own");
    await put(third, "new", "new");
    expect(await prepareWork(third, { base, lfs: false, commit })).toMatchObject({
      ahead: 2,
      leftOut: [{ path: "a/big.bin", reason: "not-restored" }],
    });
    expect(git(third, "diff", "--name-status", base)).toBe("A\t.gitattributes\nA\tnew\nM\tsmall");
    // Made anew, it is delivered.
    await put(third, "a/big.bin", "anew");
    expect(await prepareWork(third, { base, lfs: false, commit })).toMatchObject({
      ahead: 3,
      leftOutCount: 0,
    });
  });

  it("has no lock of a git that was at work when it was saved, and all other files called so", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["package.lock", "a"]);
    for (const lock of [".git/index.lock", ".git/refs/heads/x.lock", ".git/modules/sub/index.lock"])
      await put(sandbox, lock);
    const { sandbox: other } = await restored(await save(sandbox));
    expect(git(other, "ls-files", "--others")).toBe("");
    expect(existsSync(join(other.root, "package.lock"))).toBe(true);
    for (const lock of [".git/index.lock", ".git/refs/heads/x.lock", ".git/modules/sub/index.lock"])
      expect(existsSync(join(other.root, lock))).toBe(false);
    git(other, "commit", "-q", "--allow-empty", "-m", "again");
  });

  it("is not asked about where there is no Git: nothing in such a folder is then read as deleted", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["node_modules/a.js", "b.js"]);
    const index = readFileSync(join(sandbox.root, ".git/index"));
    await writeFile(join(sandbox.root, ".git/index"), "broken");
    const saved = await save(sandbox);
    expect([...unpackMissing(saved.manifest).reasons]).toEqual([["node_modules", "not-asked"]]);
    await writeFile(join(sandbox.root, ".git/index"), index);
    const after = await save(sandbox, {}, saved);
    const { sandbox: other } = await restored(saved, after);
    expect(git(other, "status", "--porcelain")).toBe("");
  });
});

withPython("a repository's history", () => {
  it("is saved beyond the limit of a single file, and working files make room for it", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["a.txt"]);
    await put(sandbox, "noise", [...Array(4000).keys()].join(" "));
    git(sandbox, "add", "-A");
    git(sandbox, "commit", "-q", "-m", "noise");
    git(sandbox, "gc", "-q");
    await put(sandbox, "loose.bin", "L".repeat(9_000));
    const saved = await save(sandbox, { fileBytes: 5_000, bytes: 50_000 });
    expect(saved.skipped.map(({ path }) => path)).toEqual(["loose.bin", "noise"]);
    const { sandbox: other } = await restored(saved);
    git(other, "fsck", "--strict");
    expect(git(other, "status", "--porcelain")).toBe("");
  });

  it("that does not fit is left out whole, and said", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["a.txt"]);
    await put(sandbox, ".git/objects/pack/pack-1.pack", "P".repeat(90_000));
    const saved = await save(sandbox, { bytes: 80_000 });
    expect(saved.skipped).toMatchObject([{ path: ".git", reason: "repository" }]);
    expect(unpackManifest(saved.manifest).map(({ path }) => path)).toEqual(["a.txt"]);
  });

  it("that has outgrown a save stays as it was before", async () => {
    const sandbox = await newSandbox();
    const base = await repository(sandbox, ["a.txt"]);
    const first = await save(sandbox, { bytes: 200_000 });
    await put(sandbox, "a.txt", "new");
    git(sandbox, "commit", "-q", "-a", "-m", "new");
    await put(sandbox, ".git/objects/pack/pack-1.pack", "P".repeat(190_000));
    const second = await save(sandbox, { bytes: 200_000 }, first);
    expect(second.skipped).toMatchObject([{ path: ".git", reason: "repository-as-before" }]);
    const { sandbox: other } = await restored(first, second);
    git(other, "fsck", "--strict");
    expect(git(other, "rev-parse", "HEAD")).toBe(base);
    expect(git(other, "diff", "--name-only")).toBe("a.txt");
  });

  it("counts as missing in nothing: a save of the same state is no new one", async () => {
    const sandbox = await newSandbox();
    await repository(sandbox, ["a.txt", "node_modules/b.js"]);
    await put(sandbox, "big");
    await truncate(join(sandbox.root, "big"), 2_000);
    const first = await save(sandbox, { fileBytes: 1_000 });
    expect((await save(sandbox, { fileBytes: 1_000 }, first)).unchanged).toBe(true);
  });
});
