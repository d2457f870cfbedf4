import { createHash } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { SandboxFiles, Sandbox } from "../../activities/sandbox/sandbox.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
let sandbox: Sandbox;
let files: SandboxFiles;
beforeAll(async () => {
  sandbox = await sandboxes.host.open(sandboxes.spec());
  files = sandbox.files;
});

const bytes = (text: string): Uint8Array => Buffer.from(text);
const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
const textOf = async (path: string): Promise<string> => {
  const answer = await files.read(path);
  return answer.ok ? Buffer.from(answer.bytes).toString() : answer.message;
};

test("a written file is read back with its size and hash, and missing folders are made", async () => {
  const written = await files.write("a/b/c.txt", bytes("content"));
  expect(written).toEqual({ ok: true, created: true, hash: hashOf("content") });
  expect(await files.read("/workspace/a/b/c.txt")).toMatchObject({
    ok: true,
    size: 7,
    hash: hashOf("content"),
  });
  expect(await files.read("a/b/c.txt", { offset: 3, maxBytes: 2 })).toMatchObject({
    bytes: bytes("te"),
    size: 7,
  });
  expect((await bash(sandbox, "stat -c '%U %a' a a/b/c.txt; ls -A a/b")).out).toBe(
    "agent 755\nagent 644\nc.txt\n",
  );
});

test("writing keeps a file's mode, and sets a requested one", async () => {
  await bash(sandbox, "echo '#!/bin/sh' > run.sh; chmod 750 run.sh");
  await files.write("run.sh", bytes("#!/bin/sh\necho hi\n"));
  await files.write("tool", bytes("x"), { mode: 0o755 });
  expect((await bash(sandbox, "stat -c %a run.sh tool; ./run.sh")).out).toBe("750\n755\nhi\n");
  expect(await files.read("run.sh")).toMatchObject({ mode: 0o750 });
});

test("a write that expects other content is refused and changes nothing", async () => {
  await files.write("stale.txt", bytes("one"));
  expect(await files.write("stale.txt", bytes("two"), { ifHash: hashOf("zero") })).toMatchObject({
    reason: "changed",
    message: /stale\.txt.*read it again/,
  });
  expect(await files.write("stale.txt", bytes("two"), { ifHash: null })).toMatchObject({ reason: "exists" });
  expect(await textOf("stale.txt")).toBe("one");
  expect(await files.write("stale.txt", bytes("two"), { ifHash: hashOf("one") })).toMatchObject({ ok: true });
  // The same write again, as if the first answer was lost.
  expect(await files.write("stale.txt", bytes("two"), { ifHash: hashOf("one") })).toMatchObject({ ok: true });
  expect(await files.write("new.txt", bytes("n"), { ifHash: null })).toMatchObject({
    ok: true,
    created: true,
  });
});

test("files and links can be removed, but not links' targets or folders", async () => {
  await bash(sandbox, "mkdir d; echo x > d/t; ln -s d/t link; ln -s nowhere dangling");
  expect(await files.remove("link", { ifHash: hashOf("y") })).toMatchObject({ reason: "changed" });
  expect(await files.remove("link", { ifHash: hashOf("x\n") })).toEqual({ ok: true });
  expect(await files.remove("dangling")).toEqual({ ok: true });
  expect(await textOf("d/t")).toBe("x\n");
  expect(await files.remove("d")).toMatchObject({ reason: "not-a-file" });
  expect(await files.remove("d/t", { ifHash: hashOf("y") })).toMatchObject({ reason: "changed" });
  expect(await files.remove("d/t", { ifHash: hashOf("x\n") })).toEqual({ ok: true });
  expect(await files.remove("d/t")).toMatchObject({ reason: "not-found" });
});

test("a listing has kinds and sizes, is sorted, and counts entries beyond the requested number", async () => {
  await bash(sandbox, "mkdir -p l/sub; printf 12345 > l/file; ln -s file l/link; mkfifo l/pipe");
  expect(await files.list("l")).toEqual({
    ok: true,
    total: 4,
    entries: [
      { name: "file", kind: "file", size: 5 },
      { name: "link", kind: "link", size: 4, target: "file" },
      { name: "pipe", kind: "other", size: 0 },
      expect.objectContaining({ name: "sub", kind: "folder" }),
    ],
  });
  expect(await files.list("l", { maxEntries: 1 })).toMatchObject({ total: 4, entries: [{ name: "file" }] });
  expect(await files.list("l/file")).toMatchObject({ reason: "not-a-folder" });
  expect(await files.stat("l/link")).toMatchObject({ kind: "link", target: "file" });
});

test.each([
  ["../etc/passwd", "outside"],
  ["/etc/passwd", "outside"],
  ["a/../../etc/passwd", "outside"],
  ["/workspace/../etc/passwd", "outside"],
  ["/workspacefoo", "outside"],
  ["to-etc/passwd", "outside"],
  ["to-passwd", "outside"],
  ["to-parent/etc/passwd", "outside"],
  ["proc-root/etc/passwd", "outside"],
  ["loop", "failed"],
  ["pipe", "not-a-file"],
  [".", "not-a-file"],
  ["no/such", "not-found"],
])("reading %j is refused: %s", async (path, reason) => {
  await bash(
    sandbox,
    "ln -sfn /etc to-etc; ln -sfn /etc/passwd to-passwd; ln -sfn ../ to-parent; ln -sfn /proc/1/root proc-root; ln -sfn loop loop; [ -p pipe ] || mkfifo pipe",
  );
  const answer = await files.read(path);
  expect(answer).toMatchObject({ ok: false, reason, message: expect.stringContaining(path) });
});

test("nothing is written through links that leave the workspace, even dangling ones", async () => {
  await bash(sandbox, "ln -s /tmp/outside.txt dangling; ln -s /tmp out-folder; mkfifo wpipe; mkdir wfolder");
  for (const path of ["dangling", "out-folder/x", "../tmp/x", "/tmp/x"]) {
    expect(await files.write(path, bytes("x"))).toMatchObject({ ok: false, reason: "outside" });
  }
  expect(await files.write("wpipe", bytes("x"))).toMatchObject({ reason: "not-a-file" });
  expect(await files.write("wfolder", bytes("x"))).toMatchObject({ reason: "not-a-file" });
  expect((await bash(sandbox, "ls /tmp")).out).toBe("");
});

test("links that stay inside the workspace work, even absolute and dangling ones", async () => {
  await bash(
    sandbox,
    "mkdir -p real; echo real > real/f; ln -s /workspace/real abs; ln -s real/../real rel; ln -s real/new to-new",
  );
  expect(await textOf("abs/f")).toBe("real\n");
  expect(await textOf("rel/f")).toBe("real\n");
  expect(await files.write("to-new", bytes("made"))).toMatchObject({ ok: true, created: true });
  expect((await bash(sandbox, "cat real/new; readlink to-new")).out).toBe("madereal/new\n");
});

test("a file that uid 1000 may not read is denied, and a write-protected one is kept", async () => {
  await bash(sandbox, "echo s > secret; chmod 000 secret; echo p > protected; chmod 444 protected");
  expect(await files.read("secret")).toMatchObject({ reason: "denied" });
  expect(await files.write("protected", bytes("x"))).toMatchObject({ reason: "denied" });
  expect(await textOf("protected")).toBe("p\n");
});

test(
  "a name that is not UTF-8 is listed readably; one with NUL or 256 bytes is refused",
  { tags: ["R57"] },
  async () => {
    await bash(sandbox, String.raw`mkdir names; printf raw > $'names/bad\xff'`);
    const listing = await files.list("names");
    const [bad] = listing.ok ? listing.entries : [];
    expect(await textOf(`names/${bad?.name}`)).toBe("raw");
    expect(await files.read("nul\0byte")).toMatchObject({ reason: "failed", message: /NUL/ });
    expect(await files.write(`names/${"x".repeat(256)}`, bytes(""))).toMatchObject({ ok: false });
  },
);

test("a file of five megabytes is written and read in pieces", async () => {
  const big = Buffer.alloc(5 * 1_048_576, "0123456789abcdef");
  expect(await files.write("big.bin", big)).toMatchObject({ ok: true });
  const answer = await files.read("big.bin", { offset: big.length - 10, maxBytes: 100 });
  expect(answer).toMatchObject({ ok: true, size: big.length, bytes: Buffer.from("6789abcdef") });
});
