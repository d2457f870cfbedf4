/** Saves and restores in images of different makes: Debian's GNU tools, and busybox alone. */
import { randomBytes } from "node:crypto";
import Dockerode from "dockerode";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { restoreWorkspace, saveWorkspace, type WorkspaceBase } from "../../activities/sandbox/workspace.ts";
import type { StoredPack } from "../../activities/sandbox/workspace-pack.ts";
import { hasGnuTools } from "../../activities/sandbox/workspace-survey.ts";
import { findBusybox, importBusybox } from "../support/busybox-image.ts";
import { createExecSandbox, type ExecSandbox } from "../support/exec-sandbox.ts";
import { createTestBoxes, type TestBoxes } from "../support/test-boxes.ts";

const busybox = await findBusybox();
const docker = new Dockerode();
const busyboxImage = `longhaul-busybox-${randomBytes(3).toString("hex")}`;
let boxes: TestBoxes;
const containers: string[] = [];
beforeAll(async () => {
  boxes = createTestBoxes();
  if (busybox) await importBusybox(docker, busybox, busyboxImage);
});
afterAll(async () => {
  for (const id of containers) await docker.getContainer(id).remove({ force: true });
  if (busybox) await docker.getImage(busyboxImage).remove({ force: true });
  await boxes.dispose();
});

async function newBox(image: string): Promise<ExecSandbox> {
  const container = await docker.createContainer({
    Image: image,
    Entrypoint: ["sleep", "600"],
    WorkingDir: "/workspace",
    HostConfig: { NetworkMode: "none", Init: true },
  });
  containers.push(container.id);
  await container.start();
  return createExecSandbox(docker, container.id);
}

const sh = async (box: ExecSandbox, script: string): Promise<string> => {
  const state = await box.run({ id: "test", argv: ["sh", "-c", script] });
  if (state.kind !== "exited" || state.exitCode !== 0)
    throw new Error(Buffer.from(await box.read("test", "err", 0, 1_000)).toString());
  return Buffer.from(await box.read("test", "out", 0, 1_000_000)).toString("latin1");
};

/** All there is, to the byte: names, kinds, modes, targets, contents. */
const everything = (box: ExecSandbox) =>
  sh(
    box,
    `find . -type d -name node_modules -prune -o -exec sh -c 'for f; do
      if [ -L "$f" ]; then echo "link $f"; readlink "$f"
      elif [ -d "$f" ]; then echo "folder $f"; for m in 1 2 4 100 200 400 1000 4000; do find "$f" -maxdepth 0 -perm -$m; done
      else echo "file $f"; for m in 1 10 100 200 400 4000; do find "$f" -maxdepth 0 -perm -$m; done; tar -cf - "$f" | tar -xOf -; fi; done' sh {} +`,
  );

const FILL = String.raw`
  mkdir -p empty/deep 'with space' node_modules/x closed sticky
  printf one > plain; printf two > "$(printf 'line\nbreak')"; printf 3 > "quote'\"\$(touch owned)"; printf 4 > ./-rf
  printf 5 > "$(printf 'caf\351')"; printf 6 > "$(printf 'ü漢🎉')"; printf 7 > "$(printf '\377\376')"
  printf 8 > "$(printf '%0255d' 1)"; printf 9 > "with space/run.sh"; chmod 751 "with space/run.sh"
  chmod 1777 sticky; printf x > node_modules/x/index.js; printf deep > closed/file; chmod 555 closed
  ln -s plain link; ln -s ../../outside away; ln -s "$(printf 'to\351')" odd; ln plain hard; : > nothing`;

describe.each([
  ["Debian's GNU tools", () => inject("sandboxImage"), true, true],
  ["busybox and nothing else", () => busyboxImage, false, busybox !== undefined],
] as const)("a workspace in an image with %s", (_name, image, isGnu, canRun) => {
  it.skipIf(!canRun)(
    "is saved by what changed and comes back to the byte: modes, links, empty folders, names of any bytes, deletions, renames [R57]",
    async () => {
      const box = await newBox(image());
      await sh(box, FILL);
      expect(await hasGnuTools(box)).toBe(isGnu);
      const chain: (StoredPack & WorkspaceBase)[] = [];
      const save = async (): Promise<void> => {
        const latest = chain.at(-1);
        const { saved } = await saveWorkspace(box, latest);
        if (!saved) throw new Error("Nothing was saved.");
        chain.push({ ...saved, depth: chain.length + 1 });
      };
      await save();
      expect((await saveWorkspace(box, chain[0])).saved).toBeUndefined();
      await sh(box, `rm ./-rf; printf ONE > plain; mv empty renamed; printf 10 > new; chmod 600 nothing`);
      await save();
      expect(chain[1]?.pack.length).toBeLessThan((chain[0]?.pack.length ?? 0) / 2);
      const other = await newBox(image());
      await sh(other, "printf stray > stray");
      const manifest = await restoreWorkspace(other, chain);
      expect(await everything(other)).toBe(await everything(box));
      expect((await saveWorkspace(other, { manifest, depth: 2 })).saved).toBeUndefined();
      // Content that changed while size and time stayed.
      await sh(other, "printf TWO > plain; chmod 640 plain; chmod 644 plain");
      expect((await saveWorkspace(other, { manifest, depth: 2 })).saved?.changed).toBeGreaterThan(0);
    },
  );
});

it.skipIf(busybox === undefined)(
  "an image without Python is refused by name, and nothing is tried again",
  async () => {
    await expect(boxes.host.open(boxes.spec({ image: busyboxImage }))).rejects.toMatchObject({
      type: "SandboxRefused",
      nonRetryable: true,
      message: expect.stringContaining("has no python3") as string,
    });
  },
);
