/** The circle's people on a real Gitea. */
import { expect } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import { giteaThreads } from "../../../activities/forge/gitea-talk.ts";
import { eventually } from "../eventually.ts";
import { emptyFolder } from "../empty-folder.ts";
import type { GiteaServer } from "../gitea/server.ts";
import { gitIn } from "../remotes.ts";
import type { CirclePlace } from "./circle.ts";

/** @param repository its path in the API @param branch of its first pull request */
export function giteaPlace(server: GiteaServer, repository: string, branch: string): CirclePlace {
  const pull = `${repository}/pulls/1`;
  const url = `${server.url}${repository.slice("/repos".length)}.git`;
  const mirror = emptyFolder();
  gitIn(mirror, "clone", "-q", "--mirror", url.replace("://", `://dev:${server.tokens.dev}@`), ".");
  const shown = () =>
    server.made<{ readonly mergeable: boolean; readonly head: { readonly sha: string } }>("dev", "GET", pull);
  const head = async () => (await shown()).head.sha;
  return {
    branch,
    head,
    async report(result) {
      const state = result === "failed" ? "failure" : "success";
      const path = `${repository}/statuses/${await head()}`;
      await server.made("dev", "POST", path, { context: "ci / test", state });
    },
    async review(comments) {
      await server.made("dev", "POST", `${pull}/reviews`, {
        event: "REQUEST_CHANGES",
        body: "Two things.",
        comments: comments.map(({ line, text }) => ({ path: "one", new_position: line, body: text })),
      });
    },
    push: (where, path, text) =>
      server.commit("dev", repository, { branch: where === "base" ? "main" : branch, path, text }),
    async squash() {
      // 405 as long as it computes whether it can be merged.
      await eventually("it is merged", async () => {
        const { status } = await server.ask("owner", "POST", `${pull}/merge`, { Do: "squash" });
        return status < 300;
      });
    },
    isMergeable: async () => (await shown()).mergeable,
    async comments() {
      const path = `${repository}/issues/1/comments`;
      const rows = await server.made<readonly { readonly body: string }[]>("dev", "GET", path);
      return rows.map(({ body }) => body);
    },
    async threads() {
      const forge = parseForge(url, "gitea") ?? expect.fail("no forge");
      const call = { forge, token: server.tokens.dev, signal: AbortSignal.timeout(10_000) };
      const threads = await giteaThreads(call, 1);
      return threads
        .map(({ id, line = 0, isResolved, comments }) => ({
          name: id,
          line,
          isResolved,
          texts: comments.map(({ text }) => text),
        }))
        .toSorted((one, other) => one.line - other.line);
    },
    git(...args) {
      gitIn(mirror, "fetch", "-q", "--prune");
      return gitIn(mirror, ...args);
    },
  };
}
