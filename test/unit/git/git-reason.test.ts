/** Error outputs as Git 2.39, GitHub and GitLab print them. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { gitReason, kindOfTrouble } from "../../../activities/git/git-words.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { remoteTrouble } from "../../../activities/git/remote.ts";
import { runGit } from "../../../activities/git/run-git.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { toRefusal } from "../../../activities/git/trouble.ts";

const SSH_END = `fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists.
`;

test.each([
  [
    `ssh: connect to host example.com port 22: Connection refused\n${SSH_END}`,
    "ssh: connect to host example.com port 22: Connection refused",
  ],
  [
    `Warning: Permanently added 'example.com' (ED25519) to the list of known hosts.\ngit@example.com: Permission denied (publickey).\n${SSH_END}`,
    "git@example.com: Permission denied (publickey)",
  ],
  [
    `fatal: '/srv/none.git' does not appear to be a git repository\n${SSH_END}`,
    "'/srv/none.git' does not appear to be a git repository",
  ],
  [
    "remote: Permission to a/b.git denied to c.\nfatal: unable to access 'https://example.com/a/b.git/': The requested URL returned error: 403\n",
    "Permission to a/b.git denied to c",
  ],
  [
    "remote: error: GH006: Protected branch update failed for refs/heads/main.        \nremote: error: Changes must be made through a pull request.        \nerror: failed to push some refs to 'https://example.com/a/b.git'\n",
    "GH006: Protected branch update failed for refs/heads/main. Changes must be made through a pull request",
  ],
  [
    "remote: \nremote: =========\nremote: \nremote: ERROR: You are not allowed to push code to this project.\nremote: \nremote: =========\nremote: \nfatal: Could not read from remote repository.\n",
    "You are not allowed to push code to this project",
  ],
  [
    "error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly\n",
    "RPC failed; HTTP 413 curl 22 The requested URL returned error: 413",
  ],
  [
    "error: object 0a1b: zeroPaddedFilemode: contains zero-padded file modes\nfatal: fsck error in packed object\nfatal: fetch-pack: invalid index-pack output\n",
    "object 0a1b: zeroPaddedFilemode: contains zero-padded file modes",
  ],
  [
    "error: Repository lacks these prerequisite commits:\nerror: 0a1b2c\n",
    "Repository lacks these prerequisite commits: 0a1b2c",
  ],
  ["Cloning into 'x'...\n\ngit fetch took longer than 60 s", "git fetch took longer than 60 s"],
  ["\u001b[2Jfatal: \u0007no\n", "[2Jfatal:  no"],
  ["fatal: the remote end hung up unexpectedly\n", "the remote end hung up unexpectedly"],
  ["", "no reason was given"],
])("of several lines, the one that says what is wrong is shown: %#", (err, reason) => {
  expect(gitReason(err)).toBe(reason);
});

test.each([
  [
    "a file that is too large",
    `remote: error: Trace: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
remote: error: See https://gh.io/lfs for more information.
remote: error: File data/big.bin is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB
remote: error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.
To https://example.com/a/b.git
 ! [remote rejected] b -> b (pre-receive hook declined)
error: failed to push some refs to 'https://example.com/a/b.git'`,
    /^File data\/big\.bin is 120\.00 MB.*GH001/,
  ],
  [
    "a rule",
    `remote: error: GH013: Repository rule violations found for refs/heads/b.
remote: Review all repository rules at https://example.com/a/b/rules?ref=refs%2Fheads%2Fb
remote:
remote: - Commits must have verified signatures.
remote:   Found 1 violation:
remote:
remote:   0a1b2c3d4e5f`,
    /^GH013: Repository rule violations found for refs\/heads\/b\. Commits must have verified signatures\. 0a1b2c3d4e5f/,
  ],
  [
    "push protection",
    `remote: error: GH013: Repository rule violations found for refs/heads/b.
remote:
remote: - GITHUB PUSH PROTECTION
remote:   —————————————————————————————————————————
remote:     Resolve the following violations before pushing again
remote:
remote:     - Push cannot contain secrets
remote:
remote:
remote:      (?) Learn how to resolve a blocked push
remote:      https://docs.github.com/code-security/secret-scanning/working-with-push-protection
remote:
remote:
remote:       —— GitHub Personal Access Token ——————————————————————
remote:        locations:
remote:          - commit: 8728dbe67
remote:            path: README.md:4
remote:
remote:        (?) To push, remove secret from commit(s) or follow this URL to allow the secret.
remote:        https://github.com/a/b/security/secret-scanning/unblock-secret/2Xabc
remote:
error: failed to push some refs`,
    /Push cannot contain secrets; GitHub Personal Access Token; locations: commit: 8728dbe67; path: README\.md:4.*unblock-secret\/2Xabc/,
  ],
  [
    "a hook's own words",
    "remote: Checking the commits of the team ...\nremote: The ticket number is missing in 0a1b2c\nremote: Commit message must begin with ABC-123\n",
    /^Commit message must begin with ABC-123; Checking the commits of the team \.\.\. The ticket number is missing in 0a1b2c$/,
  ],
])("a server's words are shown whole, the cause first: %s", (_what, err, reason) => {
  expect(gitReason(err)).toMatch(reason);
  expect(gitReason(err).length).toBeLessThanOrEqual(500);
});

test("a remote that does not answer is said in one sentence, with what to do", () => {
  const err = `ssh: connect to host example.com port 22: Connection refused\n${SSH_END}`;
  expect(remoteTrouble("ssh://git@example.com/a.git", { err })).toMatchObject({
    kind: "away",
    message:
      "example.com does not answer for ssh://git@example.com/a.git: ssh: connect to host example.com port 22: Connection refused",
  });
});

const HTTPS = "https://forge.test/acme/app.git";
test.each([
  ["fatal: unable to access 'https://forge.test/': Could not resolve host: forge.test", "away"],
  ["fatal: unable to access 'https://forge.test/': The requested URL returned error: 503", "away"],
  ["fatal: unable to access 'https://forge.test/': The requested URL returned error: 429", "away"],
  ["error: RPC failed; curl 56 GnuTLS recv error (-110)\nfatal: the remote end hung up unexpectedly", "away"],
  ["fatal: early EOF", "away"],
  ["fatal: unable to access 'https://forge.test/': Received HTTP code 502 from proxy after CONNECT", "away"],
  ["ssh: Could not resolve hostname forge.test: Temporary failure in name resolution", "away"],
  ["kex_exchange_identification: Connection closed by remote host", "away"],
  [
    "fatal: unable to access 'https://forge.test/': Received HTTP code 407 from proxy after CONNECT",
    "refused",
  ],
  ["fatal: unable to access 'https://forge.test/': The requested URL returned error: 451", "refused"],
  ["error: RPC failed; HTTP 413 curl 22\nfatal: the remote end hung up unexpectedly", "refused"],
  ["fatal: mismatched algorithms: client sha1; server sha256", "refused"],
  [
    "fatal: unable to access 'https://forge.test/': server certificate verification failed. CAfile: none CRLfile: none",
    "refused",
  ],
  [
    "fatal: unable to access 'https://forge.test/': SSL certificate problem: unable to get local issuer certificate",
    "refused",
  ],
  ["fatal: words that nobody knows", "refused"],
  ["remote: Connection refused by the policy of the day\nfatal: protocol error: bad pack header", "refused"],
  [
    "remote: The project you were looking for could not be found\nfatal: Could not read from remote repository.",
    "unknown",
  ],
  [
    "error: cannot lock ref 'refs/heads/main': Unable to create 'x/refs/heads/main.lock': File exists.",
    "ours",
  ],
  ["fatal: bad config line 5 in file ./config", "ours"],
  ["fatal: cannot open 'FETCH_HEAD': Permission denied", "ours"],
  ["error: object file ./objects/ab/cd is empty\nfatal: loose object abcd is corrupt", "ours"],
  ["error: unable to write file ./objects/ab/cd: No space left on device\nfatal: index-pack failed", "disk"],
  ["fatal: cannot mkdir /git/x: Read-only file system", "disk"],
  ["ENOSPC: no space left on device, mkdir '/git/mirrors'", "disk"],
  ["remote: fatal: No space left on device\nfatal: the remote end hung up unexpectedly", "away"],
  ["git@forge.test: Permission denied (publickey).", "credential"],
  ["fatal: Out of memory, malloc failed (tried to allocate 1048576 bytes)", "memory"],
  ["error: index-pack died of signal 9\nfatal: index-pack failed", "memory"],
  ["fatal: cannot fork() for index-pack: Resource temporarily unavailable", "memory"],
  ["fatal: unable to create threaded async: Resource temporarily unavailable", "memory"],
  ["fatal: mmap failed: Cannot allocate memory", "memory"],
  ["fatal: git fetch died of signal SIGKILL", "memory"],
  ["remote: fatal: Out of memory, malloc failed\nfatal: the remote end hung up unexpectedly", "away"],
  ["fatal: detected dubious ownership in repository at '/srv/app.git'", "refused"],
  ["fatal: unsafe repository ('/srv/app.git' is owned by someone else)", "refused"],
])("of a remote, %s is %s", (err, kind) => {
  const trouble = remoteTrouble(HTTPS, { err });
  expect(trouble.kind).toBe(kind);
  expect(toRefusal(trouble).isPassing).toBe(["away", "ours", "memory", "disk"].includes(kind));
  // In git's own words, and never as silence.
  expect(trouble.message).toContain(gitReason(err));
  expect(trouble.message.includes("does not answer")).toBe(kind === "away");
});

test("a repository of another user is not told as missing", () => {
  const err =
    "fatal: detected dubious ownership in repository at '/srv/app.git'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /srv/app.git";
  const { message, fix } = remoteTrouble("file:///srv/app.git", { err });
  expect(message).toMatch(/^Git cannot use .*dubious ownership/);
  expect(fix).toMatch(/The repository is there, but another user/);
});

test("a git that is killed, or says too much, ends with what happened", async () => {
  const folder = emptyFolder();
  const access = createGitAccess({ LONGHAUL_GIT_FOLDER: folder });
  const alias = (shell: string) => runGit(access, ["-c", `alias.x=!${shell}`, "x"]);
  const killed = await alias("kill -9 $PPID; sleep 5");
  expect(remoteTrouble(HTTPS, killed).kind).toBe("memory");
  const endless = await alias("head -c 70000000 /dev/zero");
  expect(endless.err).toMatch(/says more than 64 MiB/);
});

test("what git says in words that nobody knows is told at once, whatever the words", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{1,12}( [a-z]{1,12}){0,6}$/), (words) => {
      const { kind, message } = remoteTrouble(HTTPS, { err: `fatal: zz ${words}` });
      if (kind !== "refused") expect(words).toMatch(/time ?out|corrupt|not found|certificate/);
      else expect(message).toContain(`zz ${words}`);
    }),
  );
});

test.each([
  [
    `@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@@\nIT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nOffending ED25519 key in /git/known_hosts:3\nHost key verification failed.\n${SSH_END}`,
    "REMOTE HOST IDENTIFICATION HAS CHANGED! Offending ED25519 key in /git/known_hosts:3; Host key verification failed",
    /^The server shows another host key/,
  ],
  [
    `@@@@@@@@@@\nPermissions 0644 for '/keys/a' are too open.\nThis private key will be ignored.\nLoad key "/keys/a": bad permissions\ngit@h: Permission denied (publickey).\n${SSH_END}`,
    `Permissions 0644 for '/keys/a' are too open. Load key "/keys/a": bad permissions; git@h: Permission denied (publickey)`,
    /^Mend the file that LONGHAUL_GIT_SSH_KEY_FILE names/,
  ],
  [
    `Load key "/keys/a": error in libcrypto\ngit@h: Permission denied (publickey).\n${SSH_END}`,
    `Load key "/keys/a": error in libcrypto; git@h: Permission denied (publickey)`,
    /^Mend the file/,
  ],
  [
    "remote: The `acme' organization has enabled or enforced SAML SSO. To access\nremote: this repository, you must re-authorize the OAuth Application.\nfatal: unable to access 'https://h/a/': The requested URL returned error: 403\n",
    "The `acme' organization has enabled or enforced SAML SSO. To access this repository, you must re-authorize the OAuth Application",
    /or give the one that is set access\.$/,
  ],
])("a credential that does not serve is said with the reason, and what to do by it: %#", (err, said, fix) => {
  const trouble = remoteTrouble("git@h:acme/app.git", { err });
  expect(trouble).toMatchObject({ kind: "credential", fix: expect.stringMatching(fix) as string });
  expect(trouble.message).toBe(`h refused access to git@h:acme/app.git: ${said}`);
});

test("a certificate out of its time is no matter of authorities", () => {
  const err =
    "fatal: unable to access 'https://forge.test/': SSL certificate problem: certificate has expired";
  expect(remoteTrouble(HTTPS, { err }).fix).toMatch(/dates of the server's certificate/);
});

test("a certificate of an unknown authority names the variable that helps", () => {
  const err = "fatal: unable to access 'https://forge.test/': server certificate verification failed.";
  expect(remoteTrouble(HTTPS, { err }).fix).toContain("NODE_EXTRA_CA_CERTS");
});

test("whatever a repository or its host is called, the words keep their meaning", () => {
  const word = fc.constantFrom(
    "certificate",
    "corrupt",
    "timed-out",
    "ENOSPC",
    "not-found",
    "does-not-exist",
    "early-eof",
    "broken-pipe",
    "Authentication-failed",
    "memory",
    "EMFILE",
    "429",
  );
  const said: readonly ((repository: string, host: string) => string)[] = [
    (name, host) =>
      `fatal: unable to access 'https://${host}/a/${name}.git/': Could not resolve host: ${host}`,
    (name, host) =>
      `fatal: unable to access 'https://${host}/a/${name}.git/': Failed to connect to ${host} port 443 after 7 ms: Couldn't connect to server`,
    (name, host) =>
      `fatal: unable to access 'https://${host}/a/${name}.git/': The requested URL returned error: 503`,
    (name, host) =>
      `fatal: unable to access 'https://${host}/a/${name}.git/': SSL certificate problem: unable to get local issuer certificate`,
    (name, host) => `fatal: repository 'https://${host}/a/${name}.git/' not found`,
    (name, host) => `fatal: Authentication failed for 'https://${host}/a/${name}.git/'`,
    (name, host) => `fatal: https://${host}/a/${name}.git/info/refs not valid: is this a git repository?`,
    (_, host) =>
      `ssh: Could not resolve hostname ${host}: Temporary failure in name resolution\nfatal: Could not read from remote repository.`,
    (_, host) =>
      `ssh: connect to host ${host} port 22: Connection refused\nfatal: Could not read from remote repository.`,
  ];
  const host = fc.tuple(word, fc.constantFrom("", ".example.org")).map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.constantFrom(...said), word, host, (text, name, place) => {
      expect(kindOfTrouble(text(name, place)), text(name, place)).toBe(
        kindOfTrouble(text("app", "git.test")),
      );
    }),
    { numRuns: 1_000 },
  );
});
