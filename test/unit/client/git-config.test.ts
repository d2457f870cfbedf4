import { describe, expect, it } from "vitest";
import { safeGitConfig, safeRemoteUrl } from "../../../client/workspace/safe-repositories.ts";

describe("safeGitConfig", () => {
  it("keeps what a repository needs and writes it in Git's format", () => {
    const { text, leftOut } = safeGitConfig(
      '[core]\n\trepositoryformatversion = 0\n\tfilemode = true ; yes\n[remote "origin"]\n' +
        "\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n" +
        '[branch "feature/#1"]\n\tremote = origin\n\tmerge = "refs/heads/feature/#1"\n[user]\n\tname = A "B\\" C"\n',
    );
    expect(leftOut).toEqual([]);
    expect(text).toBe(
      '[core]\n\trepositoryformatversion = "0"\n\tfilemode = "true"\n[remote "origin"]\n' +
        '\turl = "https://example.org/a.git"\n\tfetch = "+refs/heads/*:refs/remotes/origin/*"\n' +
        '[branch "feature/#1"]\n\tremote = "origin"\n\tmerge = "refs/heads/feature/#1"\n[user]\n\tname = "A B\\" C"\n',
    );
  });

  it.each([
    ["core.fsmonitor", "[core]\nfsmonitor = /tmp/x"],
    ["core.fsmonitor", "[core] fsmonitor = /tmp/x"],
    ["core.fsmonitor", '[CORE]\nFSMonitor = "/tmp/x"'],
    ["core.sshcommand", "[core]\nsshCommand = a \\\n b"],
    ["core.hookspath", "[core]\nhooksPath = x"],
    ["core.pager", "[core]\npager = x"],
    ["core.editor", "[core]\neditor = x"],
    ["core.worktree", "[core]\nworktree = /home"],
    ["core.gitproxy", "[core]\ngitProxy = x"],
    ["alias.st", "[alias]\nst = !x"],
    ["include.path", "[include]\npath = ../evil"],
    ["includeif.gitdir:/.path", '[includeIf "gitdir:/"]\npath = x'],
    ["filter.lfs.smudge", '[filter "lfs"]\nsmudge = x'],
    ["filter.lfs.clean", "[filter.lfs]\nclean = x"],
    ["diff.x.textconv", '[diff "x"]\ntextconv = x'],
    ["merge.x.driver", '[merge "x"]\ndriver = x'],
    ["credential.helper", "[credential]\nhelper = !x"],
    ["gpg.program", "[gpg]\nprogram = x"],
    ["remote.origin.uploadpack", '[remote "origin"]\nuploadpack = x'],
    ["remote.origin.vcs", '[remote "origin"]\nvcs = x'],
    ["remote.origin.url", '[remote "origin"]\nurl = ext::sh -c x'],
    ["branch.main.remote", '[branch "main"]\nremote = ext::sh -c x'],
    ["branch.main.mergeoptions", '[branch "main"]\nmergeoptions = -s x'],
    ["submodule.a.update", '[submodule "a"]\nupdate = !x'],
    ["extensions.worktreeconfig", "[extensions]\nworktreeConfig = true"],
    ["url.https://example.org/.insteadof", '[url "https://me:secret@example.org/"]\ninsteadOf = a:'],
    ["http.https://example.org/.extraheader", '[http "https://example.org/"]\nextraheader = secret'],
  ])("leaves out %s and names it, without its value: %s", (name, text) => {
    const safe = safeGitConfig(`[core]\nbare = false\n${text}\n`);
    expect(safe).toEqual({ text: '[core]\n\tbare = "false"\n', leftOut: [name] });
    expect(safe.leftOut.join()).not.toContain("secret");
  });

  it("keeps every setting that a session's checkout makes itself", () => {
    const text = '[pack]\n\tpackSizeLimit = "48m"\n[lfs]\n\tskipdownloaderrors = "true"\n';
    expect(safeGitConfig(text)).toEqual({ text: text.toLowerCase(), leftOut: [] });
  });

  it("writes no line that a value or a name contains", () => {
    const { text } = safeGitConfig(
      '[user]\nname = "a\\n[core]\\nfsmonitor = x"\n[remote "a\\"]\nx"]\nurl = https://b/\n[branch "c\\\\"]\nremote = d\n',
    );
    expect(text).toBe("");
  });
});

describe("safeRemoteUrl", () => {
  it.each([
    ["https://token@example.org/a.git", "https://example.org/a.git"],
    ["https://me:secret@example.org:8443/a.git", "https://example.org:8443/a.git"],
    ["https://example.org/a.git?private_token=secret", "https://example.org/a.git"],
    ["ssh://git:secret@example.org/a.git", "ssh://git@example.org/a.git"],
    ["git@example.org:a/b.git", "git@example.org:a/b.git"],
    ["../sibling", "../sibling"],
  ])("takes the credentials out of %s", (url, safe) => {
    expect(safeRemoteUrl(url)).toBe(safe);
  });

  it.each([
    "ext::sh -c x",
    "fd::7",
    "-oProxyCommand=x",
    "-x:y",
    "weird://host/",
    "https://a\nb",
    "ssh://-x/y",
  ])("refuses an address for which Git would run a program of its choice: %s", (url) =>
    expect(safeRemoteUrl(url)).toBeUndefined(),
  );
});
