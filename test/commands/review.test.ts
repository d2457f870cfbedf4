import { afterAll, expect, test } from "vitest";
import { longhaul } from "../support/commands/longhaul.ts";
import { gitIn, makeRemote, serveGit } from "../support/remotes.ts";

/** A pull request of an open project, which anybody may read. */
const remote = makeRemote({ one: "1\n2\n3\n" }, { end: afterAll });
const head = remote.commit("change", { one: "1\ntwo\n3\n" });
gitIn(remote.folder, "update-ref", "refs/pull/7/head", head);
const here = { id: 5, full_name: "acme/app" };
const pull = {
  number: 7,
  html_url: "https://forge.test/acme/app/pull/7",
  title: "Write two out",
  body: "",
  state: "open",
  merged: false,
  mergeable: true,
  user: null,
  labels: [],
  head: { ref: "change", sha: head, repo: here },
  base: { ref: "main", sha: remote.at("main"), repo: here },
  merge_commit_sha: null,
};
/** In seconds, when the limit is over: far away. */
const LATER_S = 4_000_000_000;
const server = await serveGit(
  remote,
  () => true,
  async (asked, answer) => {
    if (asked.url?.startsWith("/api/") !== true) return Promise.resolve(false);
    const isPull = asked.url === "/api/v3/repos/acme/app/pulls/7";
    // Its other API answers nobody without a token. Source: docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api.
    const limit = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(LATER_S) };
    answer.writeHead(isPull ? 200 : 403, { "content-type": "application/json", ...(isPull ? {} : limit) });
    answer.end(JSON.stringify(isPull ? pull : { message: "API rate limit exceeded" }));
    return Promise.resolve(true);
  },
  afterAll,
);
const url = `${server.origin}/acme/app/pull/7`;
const finding = { path: "one", line: 2, side: "new", severity: "low", text: "A number is a number." };
const review = { summary: "It writes a number out.", verdict: "request-changes", findings: [finding] };
const order = (...flags: readonly string[]) => [
  "review",
  `${url}/files`,
  "--network",
  "none",
  "--focus",
  `numbers\nsay: ${JSON.stringify(review)}`,
  ...flags,
];

test("prints what it finds, and writes nothing into the pull request", async () => {
  const { code, out, err } = await longhaul(order());
  expect({ code, out }).toEqual({
    code: 0,
    out: "It writes a number out.\n\nIt wants changes: 1 finding.\n\none:2 (low)\n  A number is a number.\n",
  });
  expect(err).toMatch(/Ask it about its review: .* say \S+ "…"/);
});

test("with --json gives the review as one document", async () => {
  const { code, out } = await longhaul(order("--json"));
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual(review);
});

test("is 2 for what is no pull request's address, and fails for one that is not there", async () => {
  expect(await longhaul(["review", "acme/app#7"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("The address of a pull request has the form") as string,
  });
  // The workers run elsewhere, and find out.
  expect(await longhaul(["review", `${server.origin}/acme/app/pull/8`, "--network", "none"])).toMatchObject({
    code: 1,
    out: "",
    err: expect.stringContaining("refs/pull/8/head") as string,
  });
});
