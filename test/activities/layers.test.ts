/** Workspaces that stand on a base, in real sandboxes: what a save has, what a restore brings back, and that nobody writes a base. */
import { randomBytes } from "node:crypto";
import Dockerode from "dockerode";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { restoreWorkspace, type WorkspaceBase } from "../../activities/workspace/workspace.ts";
import type { StoredPack } from "../../activities/store/workspace-pack.ts";
import { chainOf } from "../support/chain-of.ts";
import { perFile } from "../support/per-file.ts";
import { saveWorkspace } from "../support/save-workspace.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();

type Saved = StoredPack & WorkspaceBase & { readonly changed: number };

async function save(sandbox: Sandbox, latest?: Saved): Promise<Saved> {
  const { saved } = await saveWorkspace(sandbox, latest);
  if (saved === undefined) throw new Error("Nothing was saved.");
  return { ...saved, depth: (latest?.depth ?? 0) + 1 };
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { state, out, err } = await bash(sandbox, script, 120_000);
  if (state.kind !== "exited" || state.exitCode !== 0) throw new Error(`${JSON.stringify(state)}: ${err}`);
  return out;
}

/** All there is, to the byte: kinds, modes, names, targets, times of files and hashes of their contents. */
const ALL = String.raw`find . -mindepth 1 -printf '%y %m %P %l ' \( -type f -printf '%T@ ' -exec sha256sum {} ';' -o -printf '\n' \) | LC_ALL=C sort | base64 -w0`;

const FILL = String.raw`
  mkdir -p docs/deep/er src/lib closed many; printf one > docs/one; printf two > docs/deep/two; printf 3 > docs/deep/er/three
  for n in $(seq 1 40); do printf "$n" > "many/f$n"; done
  printf lib > src/lib/a; printf main > src/main; ln -s main src/link; ln src/main src/hard; printf x > "$(printf 'caf\351')"
  printf y > "$(printf 'line\nbreak')"; printf 5 > closed/file; chmod 555 closed; : > nothing; mkdir empty; chmod 1777 empty`;

/** The key of a base with `FILL`, made once for this file. */
const base = perFile(
  async () => {
    const key = randomBytes(6).toString("hex");
    const { sessionId: _, ...spec } = sandboxes.spec();
    const make = (script: string) =>
      sandboxes.host.bases?.make(
        key,
        spec,
        async (sandbox) => {
          await run(sandbox, script);
          return { bytes: 0 };
        },
        new AbortController().signal,
      );
    // Half a base is not one, and is made again.
    await expect(make("printf half > half; exit 3")).rejects.toThrow("exitCode");
    expect(await sandboxes.host.bases?.isMade(key)).toBe(false);
    const filters = { label: [`longhaul.makes=${key}`] };
    expect(await sandboxes.docker.listContainers({ all: true, filters })).toEqual([]);
    await make(FILL);
    expect(await sandboxes.host.bases?.isMade(key)).toBe(true);
    return { key };
  },
  async ({ key }) => void (await sandboxes.host.bases?.forget(key)),
);

const open = (): Promise<Sandbox> => sandboxes.host.open(sandboxes.spec({ base: base.key }));

describe("a session on a base", () => {
  it("sees the base's files as its own, and a save has only what differs", async () => {
    expect(await sandboxes.host.bases?.unable(sandboxes.spec().image)).toBeUndefined();
    const [sandbox, other] = await Promise.all([open(), open()]);
    expect(await run(sandbox, "cat docs/deep/er/three src/link")).toBe("3main");
    expect((await saveWorkspace(sandbox, undefined)).saved).toBeUndefined();
    await run(
      sandbox,
      `printf ONE > docs/one; rm src/main; mv docs/deep moved; mkdir docs/deep; printf new > docs/deep/new
       chmod 700 nothing; rm -r many; rmdir empty; printf file > empty; ln -sf elsewhere src/link`,
    );
    const first = await save(sandbox);
    expect(first.changed).toBeGreaterThan(5);
    await run(sandbox, "printf TWO > docs/one; mkdir many; printf 1 > many/f1");
    const second = await save(sandbox, first);
    await restoreWorkspace(other, chainOf(first, second));
    expect(await run(other, ALL)).toBe(await run(sandbox, ALL));
    // Nothing is left to save after a restore, and no other session sees any of it.
    expect(await run(await open(), "cat docs/one src/main; ls many | wc -l")).toBe("onemain40\n");
  });

  it("cannot write the base, nor its own changes but through the workspace", async () => {
    const sandbox = await open();
    const tried = await bash(
      sandbox,
      `for f in /run/longhaul-base/docs/one /run/longhaul-changes/up/x /run/longhaul-changes/x; do printf bad > $f && echo wrote; done; true`,
    );
    expect(tried.out).toBe("");
    expect(tried.err.match(/Read-only file system/g)).toHaveLength(3);
  });

  it("renames folders of the base as any other: git mv, and what npm does", async () => {
    const sandbox = await open();
    const script = `git init -q . && git add -A && git mv docs papers && mv many other && node -e 'fs.renameSync("src", "sources")'
      && python3 -c 'import os; os.rename("papers", "docs")' && ls docs sources | head -3`;
    expect(await run(sandbox, script.replaceAll("\n", " "))).toContain("docs:");
    const [saved, again] = [await save(sandbox), await open()];
    await restoreWorkspace(again, chainOf(saved));
    expect(await run(again, ALL)).toBe(await run(sandbox, ALL));
  });

  it("does not begin on one that is removed while it begins, nor is one removed below it", async () => {
    const docker = new Dockerode();
    const host = createDockerHost({ docker, name: "test" });
    const { sessionId: _, ...limits } = sandboxes.spec();
    const key = randomBytes(6).toString("hex");
    const make = () =>
      host.bases?.make(
        key,
        limits,
        async (sandbox) => ({ bytes: Number(await run(sandbox, "printf one > a; printf 5")) }),
        new AbortController().signal,
      );
    await make();
    const createVolume = docker.createVolume.bind(docker) as Dockerode["createVolume"];
    let wasForgotten: boolean | undefined;
    docker.createVolume = (async (options: Dockerode.VolumeCreateOptions) => {
      if (options.Name?.includes("layers") === true) wasForgotten = await host.bases?.forget(key);
      return createVolume(options);
    }) as Dockerode["createVolume"];
    const spec = sandboxes.spec({ base: key });
    await expect(host.open(spec)).rejects.toThrow("base of the session's files was removed");
    expect(wasForgotten).toBe(true);
    docker.createVolume = createVolume;
    await make();
    expect(await run(await host.open(spec), "cat a")).toBe("one");
    expect(await host.bases?.forget(key)).toBe(false);
    expect(await host.bases?.list()).toContainEqual({ key, bytes: 5, sessions: [spec.sessionId] });
    await host.remove(spec.sessionId);
    expect(await host.bases?.forget(key)).toBe(true);
    await host.close();
  });

  it("is restored to the byte after any changes", { timeout: 300_000 }, async () => {
    const [sandbox, other] = [await open(), await open()];
    const saves: Saved[] = [];
    for (const seed of fc.sample(fc.nat(), 12)) {
      await run(sandbox, `python3 - <<'EOF'\n${CHANGES.replace("SEED", String(seed))}\nEOF`);
      const { saved } = await saveWorkspace(sandbox, saves.at(-1));
      if (saved !== undefined) saves.push({ ...saved, depth: saves.length + 1 });
    }
    expect(saves.length).toBeGreaterThan(5);
    await restoreWorkspace(other, chainOf(...saves));
    expect(await run(other, ALL)).toBe(await run(sandbox, ALL));
  });
});

/** Random changes of a tree: made, appended, removed, renamed, swapped, replaced by another kind, linked, closed. */
const CHANGES = String.raw`
import os, random, shutil
r = random.Random(SEED)
def all_paths():
    found = []
    for top, folders, files in os.walk(b"."):
        found += [os.path.join(top, n) for n in folders + files]
    return [p for p in found if os.path.lexists(p)]
def folders(): return [p for p in all_paths() if os.path.isdir(p) and not os.path.islink(p) and os.access(p, os.W_OK)] + [b"."]
def writable(p): return os.access(os.path.dirname(p), os.W_OK)
def remove(p): shutil.rmtree(p) if os.path.isdir(p) and not os.path.islink(p) else os.unlink(p)
names = [b"a", b"one", b"two", b"f1", b"new", b"caf\351", b"x" * 255, b"line\nbreak", b"docs", b"src"]
for _ in range(40):
    paths = [p for p in all_paths() if writable(p)]
    kind = r.randrange(9)
    try:
        into = os.path.join(r.choice(folders()), r.choice(names))
        if kind == 0: open(into, "wb").write(bytes(r.randrange(256) for _ in range(r.randrange(2000))))
        elif kind == 1: os.mkdir(into)
        elif kind == 2 and paths:
            p = r.choice(paths)
            if os.path.isfile(p) and not os.path.islink(p): open(p, "ab").write(b"more")
        elif kind == 3 and paths: remove(r.choice(paths))
        elif kind == 4 and paths:
            p = r.choice(paths)
            if not os.path.lexists(into) and not into.startswith(p + b"/"): os.rename(p, into)
        elif kind == 5 and len(paths) > 1:
            p, q = r.sample(paths, 2)
            if not (p + b"/").startswith(q + b"/") and not (q + b"/").startswith(p + b"/"):
                os.rename(p, b"swap"); os.rename(q, p); os.rename(b"swap", q)
        elif kind == 6 and paths:
            p = r.choice(paths); was = os.path.isdir(p); remove(p)
            if was: open(p, "w").write("was a folder")
            else: os.mkdir(p); open(p + b"/inner", "w").write("was a file")
        elif kind == 7: os.symlink(r.choice([b"one", b"../up", b"gone"]), into)
        elif kind == 8 and paths:
            p = r.choice(paths)
            if not os.path.islink(p): os.chmod(p, r.choice([0o755, 0o700, 0o644] if not os.path.isdir(p) else [0o755, 0o711, 0o775]))
    except OSError: pass
`;
