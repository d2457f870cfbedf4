import { expect, test } from "vitest";
import { prepareWork } from "../../activities/git/sandbox-git.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();

/** A sandbox, and a function that runs a script in it, which must succeed. */
async function opened() {
  const sandbox = await sandboxes.host.open(sandboxes.spec());
  const shell = async (script: string) => {
    const { state, out, err } = await bash(sandbox, `set -e; ${script}`);
    expect({ state, err }).toMatchObject({ state: { kind: "exited", exitCode: 0 } });
    return out.trim();
  };
  return { sandbox, shell };
}

test("a file in Git LFS is not delivered as a pointer without its content", async () => {
  const { sandbox, shell } = await opened();
  const base = await shell(
    "git init -q . && git lfs track '*.bin' >/dev/null && git add -A && git commit -q -m start && git rev-parse HEAD",
  );
  const author = { name: "Ada", email: "ada@example.org" };
  await shell("echo plain > plain.txt");
  expect(
    await prepareWork(sandbox, { base, lfs: false, commit: { message: "Plain", author } }),
  ).toMatchObject({
    ahead: 1,
  });
  await shell("head -c 5000 /dev/urandom > large.bin");
  expect(await prepareWork(sandbox, { base, lfs: false, commit: { message: "Large", author } })).toEqual({
    trouble: expect.stringMatching(/^1 files are kept by Git LFS, .*\(large.bin\)/),
  });
});

test("a large file is committed if Git LFS objects are pushed, and a lost one is not deleted", async () => {
  const { sandbox, shell } = await opened();
  const base = await shell(
    "git init -q . && git lfs track '*.bin' >/dev/null && echo a > a.bin && echo b > b.bin && git add -A && git commit -q -m start && git rev-parse HEAD",
  );
  const author = { name: "Ada", email: "ada@example.org" };
  const commit = { message: "The rest", author };
  const object = await shell("git show HEAD:a.bin | sed -n 's/^oid sha256://p'");
  await shell(
    `rm a.bin b.bin $(find .git/lfs/objects -name ${object}); head -c 11534336 /dev/zero > large.bin`,
  );
  await shell("head -c 11534336 /dev/zero > large.dat");
  expect(await prepareWork(sandbox, { base, lfs: true, commit })).toMatchObject({
    ahead: 1,
    leftOut: [
      { path: "large.dat", reason: "too-large" },
      { path: "a.bin", reason: "not-restored" },
    ].toSorted((one, other) => one.path.localeCompare(other.path)),
  });
  expect(await shell("git ls-tree -r --name-only HEAD")).toBe(".gitattributes\na.bin\nlarge.bin");
});

test("what cannot be read is named, whatever the image's language is, and the rest is committed", async () => {
  const { sandbox, shell } = await opened();
  const base = await shell(
    "git init -q . && mkdir was && echo a > was/a && echo b > b && git add -A && git commit -q -m start && git rev-parse HEAD",
  );
  await shell(
    "echo 1 > b; echo 2 > locked; echo 3 > fine; mkdir closed; echo 4 > closed/d; chmod 0 locked closed was",
  );
  const commit = { message: "The rest", author: { name: "Ada", email: "ada@example.org" } };
  const prepared = await prepareWork(sandbox, { base, lfs: false, commit });
  await shell("chmod 700 locked closed was");
  expect(prepared).toMatchObject({
    ahead: 1,
    leftOut: ["locked", "was/a", "closed/", "was/"].map((path) => ({ path, reason: "not-taken" })),
  });
  expect(await shell("git show --format= --name-status")).toBe("M\tb\nA\tfine");
});
