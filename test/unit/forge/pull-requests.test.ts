import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { openPullRequest } from "../../../activities/forge/open-pull-request.ts";
import { parseForge, type GitConfig } from "../../../activities/config/git-settings.ts";
import { ForgeRefusal } from "../../../activities/forge/calls.ts";
import { createFakeForge, type FakeForge } from "../../support/fake-forge.ts";
import { listen } from "../../support/listen.ts";

const request = {
  session: "a",
  branch: "longhaul/a",
  commit: "c1",
  into: "main",
  title: "Do it",
  body: "Done.",
  draft: true,
};

async function withForge(use: (forge: FakeForge, origin: string) => Promise<void>): Promise<void> {
  const forge = createFakeForge("secret", () => ["main", "longhaul/a"]);
  const port = await listen(createServer((asked, answer) => void forge.handle(asked, answer)));
  await use(forge, `http://127.0.0.1:${port}`);
}

const callOn = (kind: "github" | "gitlab" | "gitea", origin: string, token = "secret") => ({
  forge: parseForge(`${origin}/acme/app.git`, kind) ?? expect.fail("no forge"),
  token,
  signal: new AbortController().signal,
});

describe.each(["github", "gitlab", "gitea"] as const)("a pull request on %s", (kind) => {
  const callTo = (origin: string, token?: string) => callOn(kind, origin, token);

  it("is created once, and updated by the next run", () =>
    withForge(async (forge, origin) => {
      const first = await openPullRequest(callTo(origin), request);
      expect(first).toMatchObject({ number: 1, created: true });
      const again = await openPullRequest(callTo(origin), { ...request, body: "More." });
      expect(again).toEqual({ ...first, created: false });
      expect(forge.requests).toMatchObject([
        {
          branch: "longhaul/a",
          into: "main",
          body: expect.stringContaining("More.") as string,
          draft: true,
        },
      ]);
      expect(forge.requests[0]?.body).not.toContain("Done.");
    }));

  it.each([
    ["the title", { title: "Mine" }],
    ["the title that marked a draft", { title: "Do it", draft: false }],
    ["the whole text", { body: "Mine." }],
    ["the target", { into: "develop" }],
    ["nothing but the state", { state: "closed" as const }],
  ])("keeps what a person changed: %s", (_what, changed) =>
    withForge(async (forge, origin) => {
      await openPullRequest(callTo(origin), request);
      const [kept] = forge.requests;
      Object.assign(kept ?? {}, changed);
      const before = structuredClone(kept);
      const again = await openPullRequest(callTo(origin), { ...request, body: "More." });
      expect(again).toMatchObject({ number: 1, created: false });
      expect(forge.requests).toEqual([{ ...before, body: expect.any(String) as string }]);
      expect(forge.requests).toMatchObject([changed]);
    }),
  );

  it.each([
    ["an order that was only taken", [], { message: "queued" }],
    [
      "an address that leads nowhere",
      [],
      { number: 1, iid: 1, html_url: "javascript:x", web_url: "javascript:x" },
    ],
    ["no list", { message: "hi" }, {}],
    ["nothing", null, {}],
    ["a list of nothing", [null], {}],
  ])("is not made up of %s", async (_what, list, made) => {
    const server = createServer((asked, answer) => {
      asked.resume();
      answer.end(JSON.stringify(asked.method === "GET" ? list : made));
    });
    const port = await listen(server);
    await expect(openPullRequest(callTo(`http://127.0.0.1:${port}`), request)).rejects.toMatchObject({
      name: "ForgeRefusal",
      isPassing: true,
      message: expect.stringContaining("did not answer with a pull request") as string,
    });
  });

  it("is never that of a fork whose branch has the same name", () =>
    withForge(async (forge, origin) => {
      const theirs = {
        number: 1,
        branch: "longhaul/a",
        fork: "acme/fork",
        into: "main",
        title: "T",
        body: "Theirs.",
        draft: false,
      };
      forge.requests.push(theirs);
      expect(await openPullRequest(callTo(origin), request)).toMatchObject({ number: 2, created: true });
      expect(await openPullRequest(callTo(origin), request)).toMatchObject({ number: 2, created: false });
      expect(forge.requests[0]).toEqual({ ...theirs, body: "Theirs." });
    }));

  it("writes again only its own block, and not if a person changed that", () =>
    withForge(async (forge, origin) => {
      await openPullRequest(callTo(origin), request);
      const [kept] = forge.requests;
      if (kept === undefined) expect.fail("no request");
      kept.body = `Fixes #7.\r\n\r\n${kept.body.replaceAll("\n", "\r\n")}\r\n\r\n- [x] read`;
      await openPullRequest(callTo(origin), { ...request, body: "More. <!-- /longhaul --> $& $1" });
      expect(kept.body).toMatch(
        /^Fixes #7\.\r\n\r\n<!-- .*More\. &lt;!-- .* \$& \$1\n<!-- .*\r\n\r\n- \[x\] read$/s,
      );
      await openPullRequest(callTo(origin), { ...request, body: "Most." });
      expect(kept.body).toMatch(/^Fixes #7\..*Most\..*read$/s);
      kept.body = kept.body.replace("Most.", "Almost.");
      await openPullRequest(callTo(origin), { ...request, body: "Again." });
      expect(kept.body).toContain("Almost.");
    }));

  it("is not opened again if a person closed it or merged this commit, but for later commits", () =>
    withForge(async (forge, origin) => {
      await openPullRequest(callTo(origin), request);
      const [kept] = forge.requests;
      Object.assign(kept ?? {}, { state: "merged", commit: "c1" });
      expect(await openPullRequest(callTo(origin), request)).toMatchObject({ number: 1, state: "merged" });
      const later = await openPullRequest(callTo(origin), { ...request, commit: "c2" });
      expect(later).toMatchObject({ number: 2, created: true });
    }));

  it("is found again if it was created between the lookup and the creation", () =>
    withForge(async (forge, origin) => {
      await openPullRequest(callTo(origin), request);
      forge.blindLookups = 1;
      expect(await openPullRequest(callTo(origin), request)).toMatchObject({ number: 1, created: false });
      expect(forge.requests).toHaveLength(1);
    }));

  it("is refused with the forge's own message", () =>
    withForge(async (_forge, origin) => {
      const missing = openPullRequest(callTo(origin), { ...request, into: "gone" });
      await expect(missing).rejects.toThrow(/422.*Validation Failed/);
      const refused = await openPullRequest(callTo(origin, "wrong"), request).catch(
        (error: unknown) => error,
      );
      expect(refused).toBeInstanceOf(ForgeRefusal);
      expect(refused).toMatchObject({ status: 401, isPassing: false });
    }));
});

it.each(["github", "gitlab"] as const)("says what to do where %s has no drafts", (kind) =>
  withForge(async (forge, origin) => {
    forge.withoutDrafts = true;
    await expect(openPullRequest(callOn(kind, origin), request)).rejects.toThrow(
      /Draft pull requests are not supported.*longhaul pr a, or --pr ready/,
    );
    expect(forge.requests).toEqual([]);
  }),
);

it("finds a pull request behind many others where a list has no filter", () =>
  withForge(async (forge, origin) => {
    const call = callOn("gitea", origin);
    await openPullRequest(call, request);
    const other = { into: "main", title: "T", body: "", draft: false };
    for (let number = 2; number < 130; number += 1)
      forge.requests.push({ ...other, number, branch: `other/${number}` });
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, created: false });
    Object.assign(forge.requests[0] ?? {}, { state: "closed" });
    for (const kept of forge.requests.slice(1)) kept.state = "merged";
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, state: "closed" });
    expect(forge.requests).toHaveLength(129);
  }));

it("marks a draft by its title on a forge that has nothing else for it", () =>
  withForge(async (forge, origin) => {
    await openPullRequest(callOn("gitea", origin), request);
    expect(forge.requests).toMatchObject([{ title: "WIP: Do it", draft: true }]);
  }));

it("finds the forge by the host's name, or else by the setting", () => {
  const place = (url: string, forge: GitConfig["forge"] = "auto") => parseForge(url, forge);
  expect(place("https://github.com/acme/app.git")).toEqual({
    kind: "github",
    api: "https://api.github.com",
    project: "acme/app",
  });
  expect(place("git@gitlab.example.org:group/sub/app.git")).toEqual({
    kind: "gitlab",
    api: "https://gitlab.example.org/api/v4",
    project: "group/sub/app",
  });
  expect(place("https://code.example.org/acme/app")).toBeUndefined();
  expect(place("https://code.example.org/acme/app", "github")?.api).toBe("https://code.example.org/api/v3");
  expect(place("file:///srv/acme/app")).toBeUndefined();
  expect(place("https://codeberg.org/acme/app.git")?.kind).toBe("gitea");
  expect(place("git@forgejo.example.org:acme/app.git", "auto")).toEqual({
    kind: "gitea",
    api: "https://forgejo.example.org/api/v1",
    project: "acme/app",
  });
  expect(place("http://code.example.org:3000/git/acme/app.git", "forgejo")).toEqual({
    kind: "gitea",
    api: "http://code.example.org:3000/git/api/v1",
    project: "acme/app",
  });
});
