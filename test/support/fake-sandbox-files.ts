/** Files of the fake sandbox: a folder on disk, confined by real paths. */
import { createHash } from "node:crypto";
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import type { SandboxFiles, FileAnswer, FileEntry } from "../../activities/sandbox/sandbox.ts";

type Refusal = Extract<FileAnswer<object>, { ok: false }>;

export function createFakeFiles(root: string): SandboxFiles {
  const refuse = (reason: Refusal["reason"], name: string, what: string): Refusal => ({
    ok: false,
    reason,
    message: `${name}: ${what}.`,
  });
  // One change at a time, as the sandbox's own file program ensures by its lock.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = async <T>(change: () => Promise<T>): Promise<T> => {
    const mine = turn.then(change, change);
    turn = mine.catch(() => {});
    return mine;
  };

  /** Where the entry itself is: links in its parents are followed, a link at the end is not. */
  async function locateEntry(name: string): Promise<{ ok: true; at: string } | Refusal> {
    const lexical = path.posix.resolve("/workspace", name);
    if (lexical === "/workspace") return { ok: true, at: root };
    const parent = await locate(path.posix.dirname(lexical));
    return parent.ok ? { ok: true, at: path.join(parent.at, path.posix.basename(lexical)) } : parent;
  }

  async function locate(name: string): Promise<{ ok: true; at: string } | Refusal> {
    const lexical = path.posix.resolve("/workspace", name);
    const relative = path.posix.relative("/workspace", lexical);
    if (relative.startsWith("..")) return refuse("outside", name, "outside of /workspace");
    let existing = path.join(root, relative);
    const missing: string[] = [];
    for (;;) {
      const link = await lstat(existing).catch(() => undefined);
      const real = await realpath(existing).catch(() => undefined);
      if (real !== undefined) {
        const inside = real === root || real.startsWith(`${root}${path.sep}`);
        return inside
          ? { ok: true, at: path.join(real, ...missing) }
          : refuse("outside", name, "leads outside /workspace");
      }
      if (link !== undefined) return refuse("outside", name, "is a link that leads nowhere");
      missing.unshift(path.basename(existing));
      existing = path.dirname(existing);
    }
  }

  async function contentOf(at: string): Promise<Buffer | undefined> {
    const handle = await open(at, "r").catch(() => undefined);
    if (handle === undefined) return undefined;
    try {
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  }

  return {
    read: async (name, options = {}) => {
      const located = await locate(name);
      if (!located.ok) return located;
      const found = await stat(located.at).catch(() => undefined);
      if (found === undefined) return refuse("not-found", name, "no such file");
      if (!found.isFile()) return refuse("not-a-file", name, "is not a file");
      const all = (await contentOf(located.at)) ?? Buffer.alloc(0);
      const offset = options.offset ?? 0;
      const bytes = all.subarray(offset, offset + (options.maxBytes ?? all.length));
      return { ok: true, bytes, size: all.length, hash: sha256(all), mode: found.mode & 0o777 };
    },
    write: async (name, bytes, options = {}) =>
      inTurn(async () => {
        const located = await locate(name);
        if (!located.ok) return located;
        const found = await stat(located.at).catch(() => undefined);
        if (found !== undefined && !found.isFile()) return refuse("not-a-file", name, "is not a file");
        if (options.ifHash === null && found !== undefined) return refuse("exists", name, "exists already");
        if (typeof options.ifHash === "string") {
          const now = await contentOf(located.at);
          if (now === undefined) return refuse("not-found", name, "no such file");
          if (sha256(now) !== options.ifHash) return refuse("changed", name, "was changed meanwhile");
        }
        try {
          await mkdir(path.dirname(located.at), { recursive: true });
        } catch {
          return refuse("not-a-folder", name, "a part of the path is not a folder");
        }
        const temporary = `${located.at}.tmp-${process.pid}`;
        await writeFile(temporary, bytes);
        await chmod(temporary, options.mode ?? (found === undefined ? 0o644 : found.mode & 0o777));
        await rename(temporary, located.at);
        return { ok: true, created: found === undefined, hash: sha256(bytes) };
      }),
    remove: async (name, options = {}) =>
      inTurn(async () => {
        const located = await locateEntry(name);
        if (!located.ok) return located;
        const found = await lstat(located.at).catch(() => undefined);
        if (found === undefined) return refuse("not-found", name, "no such file");
        if (found.isDirectory()) return refuse("not-a-file", name, "is a folder");
        // The hash is of the content read at the path, so of a link's target; the link itself is removed.
        if (options.ifHash !== undefined && sha256((await contentOf(located.at)) ?? "") !== options.ifHash) {
          return refuse("changed", name, "was changed meanwhile");
        }
        await rm(located.at);
        return { ok: true };
      }),
    list: async (name, options = {}) => {
      const located = await locate(name);
      if (!located.ok) return located;
      const found = await stat(located.at).catch(() => undefined);
      if (found === undefined) return refuse("not-found", name, "no such folder");
      if (!found.isDirectory()) return refuse("not-a-folder", name, "is not a folder");
      const names = (await readdir(located.at)).toSorted();
      const entries = await Promise.all(
        names
          .slice(0, options.maxEntries ?? names.length)
          .map((entry) => entryOf(path.join(located.at, entry))),
      );
      return { ok: true, entries, total: names.length };
    },
    stat: async (name) => {
      const located = await locateEntry(name);
      if (!located.ok) return located;
      const found = await lstat(located.at).catch(() => undefined);
      if (found === undefined) return refuse("not-found", name, "no such file");
      return { ok: true, ...(await entryOf(located.at)) };
    },
  };
}

async function entryOf(at: string): Promise<FileEntry> {
  const found = await lstat(at);
  const base = { name: path.basename(at), size: found.size };
  if (found.isSymbolicLink()) return { ...base, kind: "link", target: await readlink(at) };
  if (found.isDirectory()) return { ...base, kind: "folder" };
  return { ...base, kind: found.isFile() ? "file" : "other" };
}

function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
