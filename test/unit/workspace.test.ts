import { spawnSync } from "node:child_process";
import { lstat, mkdir, readFile, readlink, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { LIMITS } from "../../activities/workspace/save-limits.ts";
import { MAX_CHAIN, restoreWorkspace, runWorkspaceProgram } from "../../activities/workspace/workspace.ts";
import { unpackManifest } from "../../activities/store/workspace-manifest.ts";
import { packWorkspace, readChain, type StoredPack } from "../../activities/store/workspace-pack.ts";
import { chainOf } from "../support/chain-of.ts";
import { createFakeSandbox, type FakeSandbox } from "../support/fake-sandbox.ts";
import { saveWorkspace } from "../support/save-workspace.ts";

/** Saves and restores are in Python, which every sandbox has and not every machine. */
const withPython = describe.skipIf(spawnSync("python3", ["--version"]).status !== 0);

const sandboxes: FakeSandbox[] = [];
async function newSandbox(): Promise<FakeSandbox> {
  const sandbox = await createFakeSandbox();
  sandboxes.push(sandbox);
  return sandbox;
}
afterEach(async () => {
  await Promise.all(sandboxes.splice(0).map((sandbox) => sandbox.dispose()));
});

async function put(sandbox: FakeSandbox, path: string, content: string): Promise<void> {
  await mkdir(join(sandbox.root, path, ".."), { recursive: true });
  await writeFile(join(sandbox.root, path), content);
}

async function contentsOf(...chain: readonly StoredPack[]): Promise<Record<string, string>> {
  const { entries, bytes } = await readChain(chainOf(...chain));
  return Object.fromEntries(
    entries.map(({ path, kind, target }) => {
      if (kind === "file") return [path, Buffer.from(bytes.get(path) ?? []).toString()];
      return [path, kind === "link" ? `-> ${target}` : "/"];
    }),
  );
}

async function saved(sandbox: FakeSandbox, latest?: StoredPack & { depth: number }) {
  const { saved: result, skipped } = await saveWorkspace(sandbox, latest);
  if (result === undefined) throw new Error("Nothing was saved.");
  return { ...result, skipped, depth: result.whole ? 1 : (latest?.depth ?? 0) + 1 };
}

withPython("a saved workspace", () => {
  it("packs only what changed since the checkpoint before it", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "src/a.txt", "one");
    await put(sandbox, "src/b.txt", "two");
    const first = await saved(sandbox);
    expect((await saveWorkspace(sandbox, first)).saved).toBeUndefined();

    await put(sandbox, "src/b.txt", "three");
    await rm(join(sandbox.root, "src/a.txt"));
    const second = await saved(sandbox, first);

    expect([second.changed, second.removed, second.whole]).toEqual([1, 1, false]);
    expect(await contentsOf(second)).toEqual({ src: "/", "src/b.txt": "three" });
    expect(await contentsOf(first, second)).toEqual({ src: "/", "src/b.txt": "three" });
  });

  it("is tried again if the program's answer cannot be read", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "a.txt", "one");
    const read = sandbox.read.bind(sandbox);
    Object.assign(sandbox, {
      read: async (...given: Parameters<typeof read>) => {
        const piece = await read(...given);
        return given[1] === "err" ? new Uint8Array(piece.byteLength).fill(32) : piece;
      },
    });
    await expect(saveWorkspace(sandbox, undefined)).rejects.toMatchObject({
      type: "SandboxUnavailable",
      nonRetryable: false,
      message: expect.stringContaining("a cut output"),
    });
    Object.assign(sandbox, { read });
    expect(await contentsOf(await saved(sandbox))).toEqual({ "a.txt": "one" });
  });

  it("skips rebuilt folders silently and files beyond 64 MB by name", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "node_modules/x/index.js", "x");
    await put(sandbox, "deep/.venv/bin/python", "x");
    await put(sandbox, "big.bin", "");
    await truncate(join(sandbox.root, "big.bin"), 65 * 1024 * 1024);
    const first = await saved(sandbox);
    expect(first.skipped).toEqual([{ path: "big.bin", bytes: 65 * 1024 * 1024, reason: "too-large" }]);
    expect(await contentsOf(first)).toEqual({ deep: "/" });
    expect((await saveWorkspace(sandbox, first)).saved).toBeUndefined();
  });

  it("is complete again after the longest chain, so that restoring stays short", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "same.txt", "same");
    const first = await saved(sandbox);
    await put(sandbox, "count.txt", "1");
    expect((await saved(sandbox, { ...first, depth: MAX_CHAIN - 1 })).whole).toBe(false);
    const last = await saved(sandbox, { ...first, depth: MAX_CHAIN });
    expect([last.whole, last.depth]).toEqual([true, 1]);
    expect(Object.keys(await contentsOf(last))).toEqual(["count.txt", "same.txt"]);
  });
});

withPython("a workspace beyond the bounds", () => {
  async function saveWithin(sandbox: FakeSandbox, limits: Partial<typeof LIMITS>, latest?: StoredPack) {
    const order = { do: "save", whole: false, hasBase: false, limits: { ...LIMITS, ...limits } } as const;
    const parts = [latest?.manifest ?? Buffer.of()];
    const { output, answer } = await runWorkspaceProgram(sandbox, order, parts, (said) => said);
    const { packBytes, skipped } = answer as {
      packBytes: number;
      skipped: readonly { path: string; reason: string }[];
    };
    const saved = { pack: output.subarray(0, packBytes), manifest: output.subarray(packBytes) };
    return { saved, skipped: skipped.map(({ path, reason }) => `${path} ${reason}`) };
  }

  it("skips only the folder that does not fit, by name, and keeps its earlier save", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "cache/1.txt", "saved before");
    await put(sandbox, "src/a.txt", "a");
    const first = await saved(sandbox);
    for (let at = 2; at < 12; at++) await put(sandbox, `cache/${at}.txt`, "");
    await put(sandbox, "src/b.txt", "b");
    const second = await saveWithin(sandbox, { entries: 8 }, first);
    expect(second.skipped).toEqual(["cache too-many"]);
    expect(await contentsOf(first, second.saved)).toEqual({
      cache: "/",
      "cache/1.txt": "saved before",
      src: "/",
      "src/a.txt": "a",
      "src/b.txt": "b",
    });
    expect((await saveWithin(sandbox, { listingBytes: 400 }, first)).skipped).toEqual(["cache too-many"]);
  });

  it("skips its largest files, its longest paths and its large files, each by name", async () => {
    const sandbox = await newSandbox();
    for (const [name, size] of Object.entries({ a: 30, b: 50, c: 10, d: 200 }))
      await put(sandbox, name, "x".repeat(size));
    await put(sandbox, "long/name", "x");
    const { saved: kept, skipped } = await saveWithin(sandbox, { bytes: 45, fileBytes: 100, pathBytes: 8 });
    expect(skipped).toEqual(["b workspace-too-large", "d too-large", "long/name path-too-long"]);
    expect(Object.keys(await contentsOf(kept))).toEqual(["a", "c", "long"]);
  });
});

withPython("a restored workspace", () => {
  it("reverts a later workspace: removes, rewrites, and keeps rebuilt folders and equal files", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "keep.txt", "keep");
    await put(sandbox, "edit.txt", "before");
    await put(sandbox, "kind", "a file");
    const first = await saved(sandbox);
    await put(sandbox, "edit.txt", "after!");
    await put(sandbox, "new/file.txt", "new");
    await rm(join(sandbox.root, "kind"));
    await mkdir(join(sandbox.root, "kind"));
    await put(sandbox, "node_modules/x.js", "x");
    const inode = (await lstat(join(sandbox.root, "keep.txt"))).ino;

    const { manifest } = await restoreWorkspace(sandbox, chainOf(first));
    expect((await saveWorkspace(sandbox, { ...first, manifest })).saved).toBeUndefined();
    expect(await readFile(join(sandbox.root, "kind"), "utf8")).toBe("a file");
    expect(await readFile(join(sandbox.root, "node_modules/x.js"), "utf8")).toBe("x");
    expect((await lstat(join(sandbox.root, "keep.txt"))).ino).toBe(inode);
    const commandsBefore = sandbox.started.length;
    await restoreWorkspace(sandbox, chainOf(first));
    expect(sandbox.started.length).toBe(commandsBefore + 1);
    expect((await lstat(join(sandbox.root, "keep.txt"))).ino).toBe(inode);
  });

  it("does not write through a link that replaced a folder", async () => {
    const sandbox = await newSandbox();
    const outside = await newSandbox();
    await put(sandbox, "folder/file.txt", "inside");
    const first = await saved(sandbox);
    await rm(join(sandbox.root, "folder"), { recursive: true });
    await symlink(outside.root, join(sandbox.root, "folder"));
    await restoreWorkspace(sandbox, chainOf(first));
    expect(await readFile(join(sandbox.root, "folder/file.txt"), "utf8")).toBe("inside");
    await expect(lstat(join(outside.root, "file.txt"))).rejects.toThrow("ENOENT");
  });

  it("also accepts files that the client uploaded", async () => {
    const sandbox = await newSandbox();
    const upload = await packWorkspace([
      { kind: "folder", path: "src", mode: 0o755 },
      {
        kind: "file",
        path: "src/long/".padEnd(180, "x") + "/a.js",
        mode: 0o644,
        bytes: Buffer.from("1"),
        mtimeMs: 1.7e12,
      },
      { kind: "link", path: "here", mode: 0o755, target: "src" },
    ]);
    await restoreWorkspace(sandbox, chainOf(upload));
    expect(await readlink(join(sandbox.root, "here"))).toBe("src");
    const next = await saved(sandbox, { ...upload, depth: 1 });
    // The folders between were created on the way; the file itself is unchanged.
    expect(unpackManifest(next.manifest).filter((entry) => entry.kind === "file")).toHaveLength(1);
    expect((await readChain(chainOf(next))).bytes.size).toBe(0);
  });

  it("refuses a broken pack with a WorkspaceLost failure before it touches a file", async () => {
    const sandbox = await newSandbox();
    await put(sandbox, "a.txt", "a");
    const { manifest } = await saved(sandbox);
    await put(sandbox, "a.txt", "newer");
    const broken = restoreWorkspace(sandbox, chainOf({ manifest, pack: Buffer.from("no gzip") }));
    await expect(broken).rejects.toMatchObject({ type: "WorkspaceLost", nonRetryable: true });
    expect(await readFile(join(sandbox.root, "a.txt"), "utf8")).toBe("newer");
  });
});
