/** The session's own commits, written anew in the relay and handed back: real git, OpenSSH and GnuPG, a sandbox that is a folder. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { emptyFolder } from "../../support/empty-folder.ts";
import { BRANCH, BOT, deliveringSession } from "../../support/delivering-session.ts";
import { gitIn, type Remote } from "../../support/remotes.ts";
import { allowedSigners, gpgKeys, makeSshKey } from "../../support/signing-keys.ts";

const gpg = gpgKeys(afterAll);
const session = (settings: Parameters<typeof deliveringSession>[0] = {}) =>
  deliveringSession({ gnupgHome: gpg.home, ...settings });

const verified = (remote: Remote, commit: string, ...options: string[]) =>
  spawnSync("git", [...options, "verify-commit", commit], {
    cwd: remote.folder,
    env: { ...gpg.environment, GIT_CONFIG_GLOBAL: "/dev/null" },
    encoding: "utf8",
  });

const signersOf = (key: string) => ["-c", `gpg.ssh.allowedSignersFile=${allowedSigners(key, BOT.email)}`];

describe("commits that are signed before they are pushed", () => {
  it("are verified by git itself: ssh", async () => {
    const key = makeSshKey("ed25519");
    const { work, deliver, remote, sh, shown } = await session({ sign: "ssh", key });
    const first = work("one");
    const second = work("two", "Add two\n\nWith more words.");
    const done = await deliver();
    expect(done).toMatchObject({ foreign: 0, remarks: [] });
    const head = remote.at(BRANCH) ?? "";
    expect(head).not.toBe(second);
    for (const commit of [head, `${head}~1`])
      expect(verified(remote, commit, ...signersOf(key))).toMatchObject({ status: 0 });
    const other = makeSshKey("ed25519");
    expect(verified(remote, head, ...signersOf(other)).status).not.toBe(0);
    expect(shown("%s%n%b%an %cn")).toBe("Add two\nWith more words.\nAcme Bot Acme Bot");
    expect(shown("%T %at %ct", `${head}~1`)).toBe(sh(`git log -1 --format='%T %at %ct' ${first}`));
    // The sandbox has them under the same names, and nothing is changed there.
    expect(sh("git rev-parse HEAD")).toBe(head);
    expect(sh("git status --porcelain --branch")).toBe(`## ${BRANCH}`);
    expect(sh("git fsck --strict")).toBe("");
  });

  it.each(["ed25519", "rsa2048"])("are verified by git itself: gpg, %s", async (kind) => {
    const id = gpg.make(`${kind}@acme.example`, { kind });
    const { work, deliver, remote } = await session({ sign: "gpg", key: id });
    work("one");
    await deliver();
    const { status, stderr } = verified(remote, BRANCH);
    expect([status, stderr]).toEqual([0, expect.stringContaining("Good signature")]);
  });

  it.each(["ssh", "gpg"] as const)(
    "have the same names when the push is repeated, by any worker (C1): %s",
    async (sign) => {
      const key = sign === "ssh" ? makeSshKey("ed25519") : gpg.make("again@acme.example");
      const { work, deliver, remote, sh, pushes } = await session({ sign, key });
      const own = work("one");
      expect(await deliver()).toMatchObject({ foreign: 0 });
      const head = remote.at(BRANCH);
      // An attempt that died before it could say so, and whose sandbox is as before.
      pushes.length = 0;
      sh(`git update-ref refs/heads/${BRANCH} ${own}`);
      expect(await deliver({ folder: emptyFolder() })).toMatchObject({ commit: head, wasThere: true });
      expect(sh("git rev-parse HEAD")).toBe(head);
    },
  );

  it("go on where the agent has committed between the push and the way back (C2)", async () => {
    const { work, deliver, remote, sh } = await session({ sign: "ssh", key: makeSshKey("ed25519") });
    work("one");
    await deliver({ atReceived: () => void work("two") });
    const first = remote.at(BRANCH) ?? "";
    expect(sh("git log -1 --format=%s")).toBe("Add two");
    expect(sh("git rev-parse HEAD~1")).not.toBe(first);
    expect(await deliver()).toMatchObject({ forced: false });
    const second = remote.at(BRANCH) ?? "";
    expect(gitIn(remote.folder, "rev-parse", `${second}~1`)).toBe(first);
    expect(gitIn(remote.folder, "log", "--format=%s", BRANCH)).toBe("Add two\nAdd one\nChange README.md");
    expect(sh("git rev-parse HEAD")).toBe(second);
  });

  it("keep both parents of a merge, and leave the commits of others alone (C3)", async () => {
    const key = makeSshKey("ed25519");
    const { work, deliver, remote, sh } = await session({ sign: "ssh", key });
    work("one");
    const theirs = remote.commit("main", { theirs: "1\n" });
    sh("git fetch -q origin; git merge -q --no-edit origin/main");
    // Of another repository, and not on this one's branches.
    const elsewhere = sh(
      "git init -q -b x else; cd else; git -c user.name=Eve -c user.email=eve@example.org commit -q --allow-empty -m Eve; git rev-parse HEAD",
    );
    sh(
      "echo else >> .git/info/exclude; git fetch -q ./else x; git merge -q --no-edit --allow-unrelated-histories FETCH_HEAD",
    );
    expect(await deliver()).toMatchObject({
      foreign: 1,
      remarks: ["1 commit is not signed: by others, and on no branch of the remote"],
    });
    const parents = gitIn(remote.folder, "log", "--format=%P", BRANCH).split(/\s+/);
    expect(parents).toContain(theirs);
    expect(parents).toContain(elsewhere);
    const own = gitIn(remote.folder, "log", "--format=%H", `--author=${BOT.email}`, BRANCH).split("\n");
    expect(own).toHaveLength(3);
    for (const commit of own) expect(verified(remote, commit, ...signersOf(key)).status).toBe(0);
    expect(sh("git rev-parse HEAD")).toBe(remote.at(BRANCH));
  });

  it("are not pushed over those that the agent amended after they were pushed (C3)", async () => {
    const { work, deliver, remote, sh } = await session({ sign: "ssh", key: makeSshKey("ed25519") });
    work("one");
    await deliver();
    const head = remote.at(BRANCH);
    sh("git commit -q --amend -m 'Add it otherwise'");
    expect(await deliver()).toMatchObject({
      refused: expect.stringContaining("rewritten commits") as string,
    });
    expect(remote.at(BRANCH)).toBe(head);
  });

  it("are refused on top of which another address has committed, with what to do", async () => {
    const { work, deliver, sh } = await session({ sign: "ssh", key: makeSshKey("ed25519") });
    work("one");
    sh("git config user.email me@example.org");
    work("two");
    expect(await deliver()).toMatchObject({
      refused: expect.stringContaining("user.email") as string,
      isPassing: false,
    });
  });

  it("keep the old key's signature once they are pushed, also if the sandbox lacks them (C5)", async () => {
    const [old, young] = [makeSshKey("ed25519"), makeSshKey("rsa")];
    const { work, deliver, remote, sh } = await session({ sign: "ssh", key: old });
    const own = work("one");
    await deliver();
    const first = remote.at(BRANCH) ?? "";
    sh(`git reset -q --hard ${own}`);
    work("two");
    expect(
      await deliver({ key: young, folder: emptyFolder(), trailers: { "Assisted-by": "{model}" } }),
    ).toMatchObject({ forced: false });
    const second = remote.at(BRANCH) ?? "";
    expect(gitIn(remote.folder, "rev-parse", `${second}~1`)).toBe(first);
    expect(verified(remote, first, ...signersOf(old)).status).toBe(0);
    expect(verified(remote, second, ...signersOf(young)).status).toBe(0);
  });

  it("are signed in a repository with SHA-256 names", async () => {
    const key = makeSshKey("ed25519");
    const remote = sha256Remote();
    const { work, deliver } = await session({ sign: "ssh", key, remote });
    work("one");
    await deliver();
    expect(remote.at(BRANCH)).toHaveLength(64);
    expect(verified(remote, BRANCH, ...signersOf(key))).toMatchObject({ status: 0 });
  });

  it("is refused with the reason if the key cannot be used, and nothing is pushed (C4)", async () => {
    const { work, deliver, remote } = await session({ sign: "ssh", key: makeSshKey("ecdsa") });
    work("one");
    expect(await deliver()).toMatchObject({
      refused: expect.stringMatching(/signs the same text in another way.*ed25519/) as string,
      isPassing: false,
    });
    expect(await deliver({ key: "" })).toMatchObject({
      refused: expect.stringContaining("LONGHAUL_GIT_SIGNING_KEY_FILE") as string,
    });
    expect(remote.at(BRANCH)).toBeUndefined();
  });

  it("runs no hook of the workspace on the way back", async () => {
    const { work, deliver, sh, sandbox, remote } = await session({ sign: "ssh", key: makeSshKey("ed25519") });
    work("one");
    const hook = join(sandbox.root, ".git", "hooks", "reference-transaction");
    mkdirSync(join(sandbox.root, ".git", "hooks"), { recursive: true });
    writeFileSync(hook, `#!/bin/sh\ntouch ${sandbox.root}/.git/ran\nexit 1\n`, { mode: 0o755 });
    await deliver();
    expect(sh("git rev-parse HEAD; ls .git/ran 2>/dev/null || echo none")).toBe(`${remote.at(BRANCH)}\nnone`);
  });

  it.each<[what: string, make: string]>([
    [
      "an encoding of its own",
      "printf 'encod\\351\\n' > .git/m; git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -F .git/m",
    ],
    [
      "ten parents",
      `tree=$(git write-tree); args=; for i in 1 2 3 4 5 6 7 8 9 10; do args="$args -p $(git commit-tree $tree -m p$i -p HEAD)"; done; git reset -q --hard $(git commit-tree $tree $args -m ten)`,
    ],
    [
      "a message of 1 MB",
      "yes 'a long line' | head -c 1000000 > .git/m; git commit -q --allow-empty -F .git/m",
    ],
    ["no message", "git commit -q --allow-empty --allow-empty-message -m ''"],
    [
      "a header that git does not know",
      `git cat-file commit HEAD | sed '/^committer/a other yes' > .git/c; git reset -q --hard $(git hash-object --literally -t commit -w .git/c)`,
    ],
    [
      "a signature of its own",
      `git cat-file commit HEAD | sed '/^committer/a gpgsig no\\n signature' > .git/c; git reset -q --hard $(git hash-object --literally -t commit -w .git/c)`,
    ],
  ])("are otherwise byte for byte as they were: one with %s (C7)", async (_what, make) => {
    const key = makeSshKey("ed25519");
    const { work, deliver, remote, sh, sandbox } = await session({ sign: "ssh", key });
    work("one");
    sh(make);
    const raw = (folder: string, commit: string) =>
      execFileSync("git", ["cat-file", "commit", commit], { cwd: folder, maxBuffer: 2 ** 24 })
        .toString("latin1")
        .replace(/^gpgsig(.*\n )*.*\n/m, "")
        .replaceAll(/^parent .*\n/gm, "parent\n");
    const before = raw(sandbox.root, "HEAD");
    const done = await deliver();
    expect(done).toHaveProperty("commit");
    expect(raw(remote.folder, BRANCH)).toBe(before);
    expect(verified(remote, BRANCH, ...signersOf(key)).status).toBe(0);
  });

  it.each<[what: string, make: string]>([
    ["two authors", "git cat-file commit HEAD | sed '/^author/p'"],
    ["NUL in its message", "git cat-file commit HEAD; printf 'a\\0b\\n'"],
  ])("are refused in Git's words, as without a signature: one with %s (C7)", async (_what, make) => {
    const { work, deliver, sh, remote } = await session({ key: makeSshKey("ed25519") });
    work("one");
    sh(`(${make}) > .git/c; git reset -q --hard $(git hash-object --literally -t commit -w .git/c)`);
    const refused = { refused: expect.stringContaining("not well-formed: ") as string };
    expect(await deliver({ sign: "ssh" })).toMatchObject(refused);
    expect(await deliver()).toMatchObject(refused);
    expect(remote.at(BRANCH)).toBeUndefined();
  });
});

function sha256Remote(): Remote {
  const folder = emptyFolder();
  gitIn(folder, "init", "-q", "--bare", "--object-format=sha256", "-b", "main");
  const tree = gitIn(folder, "hash-object", "-t", "tree", "-w", "/dev/null");
  gitIn(folder, "update-ref", "refs/heads/main", gitIn(folder, "commit-tree", tree, "-m", "Begin"));
  const at = (ref: string) => {
    try {
      return gitIn(folder, "rev-parse", "--verify", "-q", ref);
    } catch {
      return undefined;
    }
  };
  return { folder, url: `file://${folder}`, at, commit: () => "" };
}
