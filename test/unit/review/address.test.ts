import { describe, expect, it } from "vitest";
import { pullRequestAddress } from "../../../activities/config/git-settings.ts";

describe("the address of a pull request", () => {
  it.each([
    ["https://github.com/acme/app/pull/77", "https://github.com/acme/app.git", "github", "refs/pull/77/head"],
    [
      "https://git.acme.test/acme/app/pull/7/files?w=1#diff-1",
      "https://git.acme.test/acme/app.git",
      "github",
      "refs/pull/7/head",
    ],
    [
      "https://gitlab.com/acme/team/app/-/merge_requests/3/diffs",
      "https://gitlab.com/acme/team/app.git",
      "gitlab",
      "refs/merge-requests/3/head",
    ],
    [
      "http://127.0.0.1:3000/acme/app/pulls/5",
      "http://127.0.0.1:3000/acme/app.git",
      "gitea",
      "refs/pull/5/head",
    ],
    [
      "https://forge.test/code/acme/app/pulls/5/commits",
      "https://forge.test/code/acme/app.git",
      "gitea",
      "refs/pull/5/head",
    ],
    [
      "https://me@github.com/acme/pull/pull/1",
      "https://github.com/acme/pull.git",
      "github",
      "refs/pull/1/head",
    ],
  ])("%s is of %s", (text, repository, kind, ref) => {
    expect(pullRequestAddress(text)).toMatchObject({ repository, kind, ref });
  });

  it("is kept without what the person looked at", () => {
    expect(pullRequestAddress(" https://github.com/acme/app/pull/77/files#r1 ")).toMatchObject({
      url: "https://github.com/acme/app/pull/77",
      number: 77,
    });
  });

  it.each([
    "acme/app#77",
    "https://github.com/acme/app",
    "https://github.com/acme/app/issues/77",
    "https://github.com/acme/app/pull/0",
    "https://github.com/acme/app/pull/seven",
    "https://github.com/pull/7",
    "file:///acme/app/pull/7",
    "",
  ])("is not %j", (text) => {
    expect(pullRequestAddress(text)).toEqual({
      wrong: expect.stringContaining("has the form https://github.com/acme/app/pull/7") as string,
    });
  });

  it("has no password", () => {
    expect(pullRequestAddress("https://me:secret@github.com/acme/app/pull/7")).toEqual({
      wrong: expect.stringContaining("holds a credential") as string,
    });
  });
});
