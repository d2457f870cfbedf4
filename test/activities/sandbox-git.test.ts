import { expect, test } from "vitest";
import { prepareWork } from "../../activities/git/sandbox-git.ts";
import { perFile } from "../support/per-file.ts";
import { createTestSandboxes } from "../support/test-boxes.ts";

const boxes = perFile(
  () => Promise.resolve(createTestSandboxes()),
  (made) => made.dispose(),
);

test("a file that Git LFS keeps is not delivered as a pointer to nothing", async () => {
  const sandbox = await boxes.host.open(boxes.spec());
  const shell = async (script: string) => {
    const state = await sandbox.run({ id: `setup-${Math.random()}`, argv: ["sh", "-ec", script] });
    expect(state).toMatchObject({ kind: "exited", exitCode: 0 });
    return Buffer.from(await sandbox.read(state.id, "out", 0, 1_000))
      .toString()
      .trim();
  };
  const base = await shell(
    "git init -q . && git lfs track -q '*.bin' && git add -A && git commit -q -m start && git rev-parse HEAD",
  );
  const author = { name: "Ada", email: "ada@example.org" };
  await shell("echo plain > plain.txt");
  expect(await prepareWork(sandbox, { base, commit: { message: "Plain", author } })).toMatchObject({
    ahead: 1,
  });
  await shell("head -c 5000 /dev/urandom > large.bin");
  expect(await prepareWork(sandbox, { base, commit: { message: "Large", author } })).toEqual({
    trouble: expect.stringMatching(/^1 files are kept by Git LFS, .*\(large.bin\)/),
  });
});
