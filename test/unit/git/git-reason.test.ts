/** Error outputs as Git 2.39, GitHub and GitLab print them. */
import { expect, test } from "vitest";
import { gitReason } from "../../../activities/git/git-reason.ts";
import { troubleOf } from "../../../activities/git/remote.ts";

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

test("a remote that does not answer is said in one sentence, with what to do", () => {
  const err = `ssh: connect to host example.com port 22: Connection refused\n${SSH_END}`;
  expect(troubleOf("ssh://git@example.com/a.git", { err })).toMatchObject({
    kind: "away",
    message:
      "example.com does not answer for ssh://git@example.com/a.git: ssh: connect to host example.com port 22: Connection refused",
  });
});
