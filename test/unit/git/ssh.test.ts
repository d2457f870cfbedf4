import { chmodSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { createGitAccess, type GitAccess } from "../../../activities/git/git-access.ts";
import { updateMirror } from "../../../activities/git/mirror.ts";
import { pushCommit } from "../../../activities/git/push.ts";
import { openRelay } from "../../../activities/git/relay.ts";
import { removeUnusedRepositories } from "../../../activities/git/own-repositories.ts";
import { lsRemote } from "../../../activities/git/remote.ts";
import { makeRemote, type Remote } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

/** A fake ssh: runs the last argument with the user's shell, on this machine. */
const SSH = `#!/bin/sh
printf '%s\\n' "$@" >> "$(dirname "$0")/seen"
for last; do :; done
case "$*" in *refused.test*) echo 'git@refused.test: Permission denied (publickey).' >&2; exit 255;; esac
exec sh -c "$last"
`;

let remote: Remote;
let root: string;
let access: GitAccess;
beforeEach(() => {
  remote = makeRemote();
  root = emptyFolder();
  mkdirSync(join(root, "bin"));
  writeFileSync(join(root, "bin", "ssh"), SSH);
  chmodSync(join(root, "bin", "ssh"), 0o755);
  access = createGitAccess({
    PATH: `${join(root, "bin")}:${process.env["PATH"]}`,
    LONGHAUL_GIT_FOLDER: root,
    LONGHAUL_GIT_SSH_KEY_FILE: "/keys/deploy key",
  });
});

const push = { branch: "longhaul/a", allowDefaultBranch: false, abandoned: [] };
const { signal } = new AbortController();

it("a repository is read and pushed to over ssh, with the worker's key and never a prompt", async () => {
  const url = `ssh://git@host.test${remote.folder}`;
  const commit = remote.commit("side", { more: "more\n" });
  const mirror = await updateMirror(access, url);
  const relay = await openRelay(access, "a", mirror);
  expect(await pushCommit(relay, { ...push, url, commit, signal })).toEqual({ forced: false });
  expect(remote.at("longhaul/a")).toBe(commit);
  const seen = readFileSync(join(root, "bin", "seen"), "utf8").split("\n");
  expect(seen).toEqual(expect.arrayContaining(["BatchMode=yes", "-i", "/keys/deploy key", "git@host.test"]));
  const refused = await lsRemote(access, `git@refused.test:${remote.folder}`);
  expect(refused).toMatchObject({
    trouble: {
      kind: "credential",
      fix: "Set LONGHAUL_GIT_SSH_KEY_FILE where the worker runs, or give the one that is set access.",
    },
  });
});

it("a relay that no push has used for a month is removed, and recreated by the next one", async () => {
  const commit = remote.commit("side", { more: "more\n" });
  const mirror = await updateMirror(access, remote.url);
  const { folder } = await openRelay(access, "a", mirror);
  const other = await openRelay(access, "b", mirror);
  const longAgo = new Date(Date.now() - 31 * 86_400_000);
  utimesSync(folder, longAgo, longAgo);
  expect(await removeUnusedRepositories(access)).toEqual([expect.stringContaining("removed the relay")]);
  expect([existsSync(folder), existsSync(other.folder)]).toEqual([false, true]);
  const again = await openRelay(access, "a", mirror);
  const pushed = await pushCommit(again, { ...push, url: remote.url, commit, signal });
  expect(pushed).toEqual({ forced: false });
});
