/** Making a draft ready, and whether a base demands its newest commit, by the answers of each forge. */
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { parseForge, type ForgePlace } from "../../../activities/config/git-settings.ts";
import { adapterFor } from "../../../activities/forge/forges.ts";
import { listen } from "../../support/listen.ts";

type Answers = (method: string, path: string, fields: Readonly<Record<string, unknown>>) => unknown;

/** A number is a status that refuses. */
async function on(kind: ForgePlace["kind"], answers: Answers) {
  const server = createServer(
    (request, response) =>
      void text(request).then((sent) => {
        const path = (request.url ?? "")
          .replace(/\?.*$/, "")
          .replace(/^\/api\/v\d(\/repos\/acme\/app|\/projects\/acme%2Fapp)?/, "");
        const fields = (sent === "" ? {} : JSON.parse(sent)) as Readonly<Record<string, unknown>>;
        const body = answers(request.method ?? "GET", path, fields) ?? 404;
        const status = typeof body === "number" ? body : 200;
        response
          .writeHead(status, { "content-type": "application/json" })
          .end(JSON.stringify(status === 200 ? body : { message: "refused" }));
      }),
  );
  const forge = parseForge(`http://127.0.0.1:${await listen(server)}/acme/app.git`, kind);
  const call = {
    forge: forge ?? expect.fail("no forge"),
    token: "secret",
    signal: AbortSignal.timeout(60_000),
  };
  return { call, forge: adapterFor(call) };
}

const pull = {
  number: 1,
  base: { branch: "main", commit: "b1" },
} as Parameters<ReturnType<typeof adapterFor>["demandsNewestBase"]>[1];

describe("a draft is made ready", () => {
  it("on GitHub by its other API, and what that shows counts", async () => {
    const isDraft = async (shown: boolean) => {
      const { call, forge } = await on("github", (_method, _path, { query }) =>
        String(query).startsWith("mutation")
          ? { data: { markPullRequestReadyForReview: { pullRequest: { isDraft: shown } } } }
          : { data: { repository: { pullRequest: { id: "PR_1" } } } },
      );
      return forge.makeReady(call, 1);
    };
    expect(await isDraft(false)).toEqual({ done: true });
    expect(await isDraft(true)).toMatchObject({ done: false, why: expect.stringContaining("still") });
  });

  it("on GitHub not without the right to, which is said", async () => {
    const { call, forge } = await on("github", () => ({
      data: null,
      errors: [{ type: "FORBIDDEN", message: "Resource not accessible" }],
    }));
    expect(await forge.makeReady(call, 1)).toMatchObject({
      done: false,
      why: expect.stringContaining("Resource not accessible"),
    });
  });

  it.each([
    ["gitlab", "Draft: Do it", "Do it"],
    ["gitlab", "[Draft] draft: Do: it", "Do: it"],
    ["gitea", "WIP: Do it", "Do it"],
    ["gitea", "[WIP] Do it", "Do it"],
  ] as const)("on %s by its title: %s", async (kind, title, ready) => {
    const written: unknown[] = [];
    const { call, forge } = await on(kind, (method, path, fields) => {
      if (!/^\/(pulls|merge_requests)\/1$/.test(path)) return undefined;
      if (method !== "GET") written.push(fields);
      return { title, draft: method === "GET" };
    });
    expect(await forge.makeReady(call, 1)).toEqual({ done: true });
    expect(written).toEqual([{ title: ready }]);
  });

  it.each([
    ["gitea", "Entwurf: Do it", undefined],
    ["gitea", "WIP: Do it", true],
    ["gitlab", "Draft: Do it", true],
    ["gitlab", "Draft: ", undefined],
  ] as const)("on %s not where its title %j does not make it one", async (kind, title, stays) => {
    const { call, forge } = await on(kind, (method) => {
      if (method === "GET") return { title, draft: true };
      return stays === undefined ? expect.fail("nothing is to be written") : { title, draft: stays };
    });
    expect(await forge.makeReady(call, 1)).toMatchObject({ done: false });
  });
});

describe("a base demands its newest commit", () => {
  const github = (state: string, rules: unknown) =>
    on("github", (_method, path) => (path === "/pulls/1" ? { mergeable_state: state } : rules));

  it.each([
    ["behind", [], true],
    [
      "blocked",
      [{ type: "required_status_checks", parameters: { strict_required_status_checks_policy: true } }],
      true,
    ],
    ["blocked", [{ type: "required_status_checks", parameters: { required_status_checks: [] } }], false],
    ["clean", [], false],
  ] as const)("on GitHub: %s, %j", async (state, rules, demands) => {
    const { call, forge } = await github(state, rules);
    expect(await forge.demandsNewestBase(call, pull)).toBe(demands);
  });

  it.each([
    ["merge", false],
    ["rebase_merge", true],
    ["ff", true],
    [undefined, undefined],
  ] as const)("on GitLab: %s", async (method, demands) => {
    const { call, forge } = await on("gitlab", () => ({ id: 1, merge_method: method }));
    expect(await forge.demandsNewestBase(call, pull)).toBe(demands);
  });

  it.each([
    ["no rule", "", 404, false],
    ["a rule that does", "main", { block_on_outdated_branch: true }, true],
    ["a rule that may not be read", "main", 403, undefined],
  ] as const)("on Gitea: %s", async (_what, rule, protection, demands) => {
    const { call, forge } = await on("gitea", (_method, path) =>
      path === "/branches/main" ? { effective_branch_protection_name: rule } : protection,
    );
    expect(await forge.demandsNewestBase(call, pull)).toBe(demands);
  });
});
