import { spawnSync } from "node:child_process";
import {
  chmod,
  lstat,
  mkdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { MAX_CHAIN, restoreWorkspace, saveWorkspace } from "../../activities/workspace/workspace.ts";
import { unpackManifest } from "../../activities/store/workspace-manifest.ts";
import { LIMITS, runWorkspaceProgram } from "../../activities/workspace/workspace-program.ts";
import { packWorkspace, readChain, type StoredPack } from "../../activities/store/workspace-pack.ts";
import { chainOf } from "../support/chain-of.ts";
import { createFakeSandbox, type FakeSandbox } from "../support/fake-sandbox.ts";

/** What saves and restores is Python, which every sandbox has and not every machine. */
const withPython = describe.skipIf(spawnSync("python3", ["--version"]).status !== 0);

const boxes: FakeSandbox[] = [];
async function newBox(): Promise<FakeSandbox> {
  const box = await createFakeSandbox();
  boxes.push(box);
  return box;
}
afterEach(async () => {
  await Promise.all(boxes.splice(0).map((box) => box.dispose()));
});

async function put(box: FakeSandbox, path: string, content: string): Promise<void> {
  await mkdir(join(box.root, path, ".."), { recursive: true });
  await writeFile(join(box.root, path), content);
}

async function contentsOf(...chain: readonly StoredPack[]): Promise<Record<string, string>> {
  const { entries, bytes } = await readChain(chainOf(...chain));
  return Object.fromEntries(
    entries.map(({ path, kind, target }) => [
      path,
      kind === "file"
        ? Buffer.from(bytes.get(path) ?? []).toString()
        : kind === "link"
          ? `-> ${target}`
          : "/",
    ]),
  );
}

async function saved(box: FakeSandbox, latest?: StoredPack & { depth: number }) {
  const { saved: result, skipped } = await saveWorkspace(box, latest);
  if (result === undefined) throw new Error("Nothing was saved.");
  return { ...result, skipped, depth: result.whole ? 1 : (latest?.depth ?? 0) + 1 };
}

withPython("a saved workspace", () => {
  it("packs only what changed since the checkpoint before it", async () => {
    const box = await newBox();
    await put(box, "src/a.txt", "one");
    await put(box, "src/b.txt", "two");
    const first = await saved(box);
    expect((await saveWorkspace(box, first)).saved).toBeUndefined();

    await put(box, "src/b.txt", "three");
    await rm(join(box.root, "src/a.txt"));
    const second = await saved(box, first);

    expect([second.changed, second.removed, second.whole]).toEqual([1, 1, false]);
    expect(await contentsOf(second)).toEqual({ src: "/", "src/b.txt": "three" });
    expect(await contentsOf(first, second)).toEqual({ src: "/", "src/b.txt": "three" });
  });

  it("keeps names with spaces, line breaks, quotes, leading dashes and other scripts", async () => {
    const box = await newBox();
    const names = [
      "a b.txt",
      "line\nbreak",
      "-rf",
      "--checkpoint-action=exec=touch owned",
      "quote'\"",
      "überß 漢字",
      "*",
    ];
    for (const name of names) await put(box, name, name);
    const first = await saved(box);
    const other = await newBox();
    await restoreWorkspace(other, chainOf(first));
    for (const name of names) expect(await readFile(join(other.root, name), "utf8")).toBe(name);
  });

  it("leaves out rebuilt folders silently and files beyond 64 MB by name", async () => {
    const box = await newBox();
    await put(box, "node_modules/x/index.js", "x");
    await put(box, "deep/.venv/bin/python", "x");
    await put(box, "big.bin", "");
    await truncate(join(box.root, "big.bin"), 65 * 1024 * 1024);
    const first = await saved(box);
    expect(first.skipped).toEqual([{ path: "big.bin", bytes: 65 * 1024 * 1024, reason: "too-large" }]);
    expect(await contentsOf(first)).toEqual({ deep: "/" });
    expect((await saveWorkspace(box, first)).saved).toBeUndefined();
  });

  it("is whole again after the longest chain, so that restoring stays short", async () => {
    const box = await newBox();
    await put(box, "same.txt", "same");
    const first = await saved(box);
    await put(box, "count.txt", "1");
    expect((await saved(box, { ...first, depth: MAX_CHAIN - 1 })).whole).toBe(false);
    const last = await saved(box, { ...first, depth: MAX_CHAIN });
    expect([last.whole, last.depth]).toEqual([true, 1]);
    expect(Object.keys(await contentsOf(last))).toEqual(["count.txt", "same.txt"]);
  });

  it("packs against the base where the same step is saved again", async () => {
    const box = await newBox();
    await put(box, "a.txt", "1");
    const base = await saved(box);
    await put(box, "b.txt", "1");
    const latest = await saved(box, base);
    expect((await saveWorkspace(box, latest, { base })).saved).toBeUndefined();
    await put(box, "c.txt", "1");
    const { saved: again } = await saveWorkspace(box, latest, { base });
    if (again === undefined) throw new Error("Nothing was saved.");
    expect(Object.keys(await contentsOf(base, again))).toEqual(["a.txt", "b.txt", "c.txt"]);
  });
});

withPython("a workspace beyond the bounds", () => {
  async function saveWithin(box: FakeSandbox, limits: Partial<typeof LIMITS>, latest?: StoredPack) {
    const order = { do: "save", whole: false, hasBase: false, limits: { ...LIMITS, ...limits } } as const;
    const parts = [latest?.manifest ?? Buffer.of()];
    const { output, answer } = await runWorkspaceProgram(box, order, parts, (said) => said);
    const { packBytes, skipped } = answer as {
      packBytes: number;
      skipped: readonly { path: string; reason: string }[];
    };
    const saved = { pack: output.subarray(0, packBytes), manifest: output.subarray(packBytes) };
    return { saved, skipped: skipped.map(({ path, reason }) => `${path} ${reason}`) };
  }

  it("loses the folder alone that there is no room for, by name, and keeps what was saved of it before", async () => {
    const box = await newBox();
    await put(box, "cache/1.txt", "saved before");
    await put(box, "src/a.txt", "a");
    const first = await saved(box);
    for (let at = 2; at < 12; at++) await put(box, `cache/${at}.txt`, "");
    await put(box, "src/b.txt", "b");
    const second = await saveWithin(box, { entries: 8 }, first);
    expect(second.skipped).toEqual(["cache too-many"]);
    expect(await contentsOf(first, second.saved)).toEqual({
      cache: "/",
      "cache/1.txt": "saved before",
      src: "/",
      "src/a.txt": "a",
      "src/b.txt": "b",
    });
    expect((await saveWithin(box, { listingBytes: 400 }, first)).skipped).toEqual(["cache too-many"]);
  });

  it("loses its largest files, its longest paths and its large files, each by name", async () => {
    const box = await newBox();
    for (const [name, size] of Object.entries({ a: 30, b: 50, c: 10, d: 200 }))
      await put(box, name, "x".repeat(size));
    await put(box, "long/name", "x");
    const { saved: kept, skipped } = await saveWithin(box, { bytes: 45, fileBytes: 100, pathBytes: 8 });
    expect(skipped).toEqual(["b workspace-too-large", "d too-large", "long/name path-too-long"]);
    expect(Object.keys(await contentsOf(kept))).toEqual(["a", "c", "long"]);
  });
});

withPython("a restored workspace", () => {
  it("has the same content, modes, times and links, so that saving it again finds nothing", async () => {
    const box = await newBox();
    await put(box, "run.sh", "#!/bin/sh\n");
    await chmod(join(box.root, "run.sh"), 0o751);
    await utimes(join(box.root, "run.sh"), 1_700_000_000, 1_700_000_000.123456);
    await mkdir(join(box.root, "empty"));
    await put(box, "closed/file", "in a folder without write permission");
    await chmod(join(box.root, "closed"), 0o555);
    await symlink("../../outside", join(box.root, "link"));
    const first = await saved(box);

    const other = await newBox();
    const manifest = await restoreWorkspace(other, chainOf(first));
    expect((await lstat(join(other.root, "run.sh"))).mode & 0o7777).toBe(0o751);
    expect((await lstat(join(other.root, "run.sh"))).mtimeMs).toBeCloseTo(1_700_000_000_123.456, 2);
    expect(await readlink(join(other.root, "link"))).toBe("../../outside");
    expect((await lstat(join(other.root, "closed"))).mode & 0o777).toBe(0o555);
    expect((await saveWorkspace(other, { ...first, manifest })).saved).toBeUndefined();
  });

  it("takes a later workspace back: removes, rewrites, and leaves rebuilt folders and equal files alone", async () => {
    const box = await newBox();
    await put(box, "keep.txt", "keep");
    await put(box, "edit.txt", "before");
    await put(box, "kind", "a file");
    const first = await saved(box);
    await put(box, "edit.txt", "after!");
    await put(box, "new/file.txt", "new");
    await rm(join(box.root, "kind"));
    await mkdir(join(box.root, "kind"));
    await put(box, "node_modules/x.js", "x");
    const inode = (await lstat(join(box.root, "keep.txt"))).ino;

    const manifest = await restoreWorkspace(box, chainOf(first));
    expect((await saveWorkspace(box, { ...first, manifest })).saved).toBeUndefined();
    expect(await readFile(join(box.root, "kind"), "utf8")).toBe("a file");
    expect(await readFile(join(box.root, "node_modules/x.js"), "utf8")).toBe("x");
    expect((await lstat(join(box.root, "keep.txt"))).ino).toBe(inode);
    const commandsBefore = box.started.length;
    await restoreWorkspace(box, chainOf(first));
    expect(box.started.length).toBe(commandsBefore + 1);
    expect((await lstat(join(box.root, "keep.txt"))).ino).toBe(inode);
  });

  it("does not write through a link that took the place of a folder", async () => {
    const box = await newBox();
    const outside = await newBox();
    await put(box, "folder/file.txt", "inside");
    const first = await saved(box);
    await rm(join(box.root, "folder"), { recursive: true });
    await symlink(outside.root, join(box.root, "folder"));
    await restoreWorkspace(box, chainOf(first));
    expect(await readFile(join(box.root, "folder/file.txt"), "utf8")).toBe("inside");
    await expect(lstat(join(outside.root, "file.txt"))).rejects.toThrow("ENOENT");
  });

  it("comes from files put in by the client just the same", async () => {
    const box = await newBox();
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
    await restoreWorkspace(box, chainOf(upload));
    expect(await readlink(join(box.root, "here"))).toBe("src");
    const next = await saved(box, { ...upload, depth: 1 });
    // The folders between were made on the way; the file itself is unchanged.
    expect(unpackManifest(next.manifest).filter((entry) => entry.kind === "file")).toHaveLength(1);
    expect((await readChain(chainOf(next))).bytes.size).toBe(0);
  });

  it("refuses a broken pack with a WorkspaceLost failure before it touches a file", async () => {
    const box = await newBox();
    await put(box, "a.txt", "a");
    const { manifest } = await saved(box);
    await put(box, "a.txt", "newer");
    const broken = restoreWorkspace(box, chainOf({ manifest, pack: Buffer.from("no gzip") }));
    await expect(broken).rejects.toMatchObject({ type: "WorkspaceLost", nonRetryable: true });
    expect(await readFile(join(box.root, "a.txt"), "utf8")).toBe("newer");
  });
});
