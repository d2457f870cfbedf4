/** Saves and restores in real sandboxes: names of any bytes, modes that close a folder to its owner, earlier versions' saves. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { restoreWorkspace, type WorkspaceBase } from "../../activities/workspace/workspace.ts";
import { readChain, type StoredPack } from "../../activities/store/workspace-pack.ts";
import { chainOf } from "../support/chain-of.ts";
import { asRoot, bash, useTestSandboxes } from "../support/test-sandboxes.ts";
import { saveWorkspace } from "../support/save-workspace.ts";

const sandboxes = useTestSandboxes();

const open = (): Promise<Sandbox> => sandboxes.host.open(sandboxes.spec());

type Saved = StoredPack & WorkspaceBase;

async function save(sandbox: Sandbox, latest?: Saved): Promise<Saved> {
  const { saved } = await saveWorkspace(sandbox, latest);
  if (saved === undefined) throw new Error("Nothing was saved.");
  return { ...saved, depth: (latest?.depth ?? 0) + 1 };
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  const { state, out, err } = await bash(sandbox, script);
  if (state.kind !== "exited" || state.exitCode !== 0) throw new Error(`${JSON.stringify(state)}: ${err}`);
  return out;
}

/** All there is, to the byte: kinds, modes, names, targets, times of files and hashes of their contents. */
const ALL = String.raw`find . -mindepth 1 -name node_modules -prune -o -printf '%y %m %P %l ' \( -type f -printf '%T@ ' -exec sha256sum {} ';' -o -printf '\n' \) | LC_ALL=C sort | base64 -w0`;

const FILL = String.raw`
  mkdir -p empty/deep 'with space' node_modules/x closed sticky
  printf one > plain; printf two > "$(printf 'line\nbreak')"; printf 3 > "quote'\"\$(touch owned)"; printf 4 > ./-rf
  printf 5 > "$(printf 'caf\351')"; printf 6 > "$(printf 'ü漢🎉')"; printf 7 > "$(printf '\377\376')"
  printf 8 > "$(printf '%0255d' 1)"; printf 9 > "with space/run.sh"; chmod 751 "with space/run.sh"
  chmod 1777 sticky; printf x > node_modules/x/index.js; printf deep > closed/file; chmod 555 closed
  ln -s plain link; ln -s ../../outside away; ln -s "$(printf 'to\351')" odd; ln plain hard; : > nothing`;

describe("a workspace", () => {
  it("is saved and restored by the image's Python, whatever the tools put first on their path", async () => {
    const sandbox = await open();
    await run(
      sandbox,
      `mkdir -p ~/.local/bin; printf '#!/bin/sh\\nexit 1\\n' > ~/.local/bin/python3; chmod +x ~/.local/bin/python3
       python3 && exit 1; printf kept > file`,
    );
    const saved = await save(sandbox);
    await run(sandbox, "rm file");
    await restoreWorkspace(sandbox, chainOf(saved));
    expect(await run(sandbox, "cat file")).toBe("kept");
  });

  it(
    "is saved by what changed, and comes back to the byte with modes, links and names",
    { tags: ["R57"] },
    async () => {
      const [sandbox, other] = await Promise.all([open(), open()]);
      await run(sandbox, FILL);
      const first = await save(sandbox);
      expect((await saveWorkspace(sandbox, first)).saved).toBeUndefined();
      await run(
        sandbox,
        `rm ./-rf; printf ONE > plain; mv empty renamed; printf 10 > new; chmod 600 nothing; rmdir sticky; ln -s away sticky`,
      );
      const second = await save(sandbox, first);
      expect(second.pack.length).toBeLessThan(first.pack.length / 2);
      await run(other, "printf stray > stray; mkdir plain; printf x > plain/x; printf y > closed");
      const { manifest } = await restoreWorkspace(other, chainOf(first, second));
      expect(await run(other, ALL)).toBe(await run(sandbox, ALL));
      expect((await saveWorkspace(other, { manifest, depth: 2 })).saved).toBeUndefined();
      // Content that changed while size and time stayed.
      await run(other, "touch -r plain time; printf TWO > plain; touch -r time plain; rm time");
      expect((await saveWorkspace(other, { manifest, depth: 2 })).saved?.changed).toBe(1);
    },
  );

  it("that an earlier version saved comes back to the byte, and can be read by a client", async () => {
    const stored = JSON.parse(
      readFileSync(new URL("../fixtures/workspace-save.json", import.meta.url), "utf8"),
    ) as { chain: { manifest: string; pack: string }[]; tree: string };
    const chain = chainOf(
      ...stored.chain.map(({ manifest, pack }) => ({
        manifest: Buffer.from(manifest, "base64"),
        pack: Buffer.from(pack, "base64"),
      })),
    );
    const sandbox = await open();
    const { manifest } = await restoreWorkspace(sandbox, chain);
    expect(await run(sandbox, ALL)).toBe(stored.tree);
    expect((await saveWorkspace(sandbox, { manifest, depth: 3 })).saved).toBeUndefined();
    const { entries, bytes } = await readChain(chain);
    expect(entries.length).toBe(
      Buffer.from(stored.tree, "base64").toString("latin1").trim().split("\n").length,
    );
    expect(Buffer.from(bytes.get("README.md") ?? []).toString()).toBe("changed\n");
  });

  it("larger than one piece of the stream comes back whole", async () => {
    const [sandbox, other] = await Promise.all([open(), open()]);
    await run(sandbox, "for i in $(seq 6); do head -c 4000000 /dev/urandom > f$i; done");
    const first = await save(sandbox);
    await run(sandbox, "head -c 20000000 /dev/urandom > f1");
    await restoreWorkspace(other, chainOf(first, await save(sandbox, first)));
    expect(await run(other, ALL)).toBe(await run(sandbox, ALL));
  });
});

describe("a mode that keeps the owner out", () => {
  it("of folders and files loses nothing: they are saved as they are and come back with it", async () => {
    const [sandbox, other] = await Promise.all([open(), open()]);
    await run(sandbox, "mkdir -p src/deep; echo a > src/a; echo b > src/deep/b; echo c > c");
    const first = await save(sandbox);
    await run(sandbox, "echo B > src/deep/b; chmod 000 c; chmod -R 644 src || true");
    const { saved, skipped } = await saveWorkspace(sandbox, first);
    expect(skipped).toEqual([]);
    expect(saved).toMatchObject({ removed: 0 });
    expect(await run(sandbox, "stat -c '%a' src c")).toBe("644\n0\n");
    const chain = chainOf(first, ...(saved ? [saved] : []));
    const { manifest } = await restoreWorkspace(other, chain);
    expect(await run(other, "stat -c '%a' src c")).toBe("644\n0\n");
    expect((await saveWorkspace(other, { manifest, depth: 2 })).saved).toBeUndefined();
    expect(await run(other, "chmod -R u+rwX src c; cat src/a src/deep/b c; stat -c '%a' src/deep")).toBe(
      "a\nB\nc\n755\n",
    );
  });

  it("of the workspace itself keeps no command, no file operation, no save and no new worker out", async () => {
    const spec = sandboxes.spec();
    const sandbox = await sandboxes.host.open(spec);
    await run(sandbox, "echo kept > kept; chmod 000 /workspace");
    expect(await run(sandbox, "cat kept")).toBe("kept\n");
    await run(sandbox, "chmod 000 /workspace");
    expect(await sandbox.files.read("kept")).toMatchObject({ ok: true });
    await run(sandbox, "chmod 000 /workspace");
    expect((await saveWorkspace(sandbox, undefined)).saved).toMatchObject({ changed: 1 });
    await run(sandbox, "chmod 000 /workspace");
    const again = await sandboxes.newHost().open(spec);
    expect(again.empty).toBe(false);
    expect(await run(again, "cat kept")).toBe("kept\n");
  });
});

it("what cannot be read now is named, and stays as saved before, beyond the longest chain too", async () => {
  const [sandbox, other] = await Promise.all([open(), open()]);
  await run(sandbox, "mkdir -p src/in; echo one > src/in/a; echo two > b; echo three > c");
  const first = await save(sandbox);
  await asRoot(sandboxes, sandbox, "chown -R 0:0 src b && chmod 700 src && chmod 600 b");
  await run(sandbox, "echo new > new; rm c");
  const { saved, skipped } = await saveWorkspace(sandbox, { ...first, depth: 20 });
  expect(skipped.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
    "b not-readable",
    "src not-readable",
  ]);
  if (saved === undefined) throw new Error("Nothing was saved.");
  expect(saved).toMatchObject({ whole: false, removed: 1 });
  await restoreWorkspace(other, chainOf(first, saved));
  expect(await run(other, "cat src/in/a b new; ls")).toBe("one\ntwo\nnew\nb\nnew\nsrc\n");
  // What can never be read does not make every step look like a change.
  expect((await saveWorkspace(sandbox, { ...saved, depth: 2 })).saved).toBeUndefined();
});
