import { createServer, type IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { findForge } from "../../../activities/forge/recognise.ts";
import { listen } from "../../support/listen.ts";

/** A server that answers one path of Gitea's. */
async function serve(path: string, status: number, body: string) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    response.writeHead(request.url === path ? status : 404, { "content-type": "application/json" });
    response.end(request.url === path ? body : "{}");
  });
  return { asked, origin: `http://127.0.0.1:${await listen(server)}` };
}

describe("a forge whose host does not say what it is", () => {
  it.each([
    ["Gitea", "1.24.6"],
    ["Forgejo", "11.0.1+gitea-1.22.0"],
    ["a build without a version", "development"],
  ])("is recognised by its version, without a credential: %s", async (_what, version) => {
    const { asked, origin } = await serve("/api/v1/version", 200, JSON.stringify({ version }));
    expect(await findForge(`${origin}/acme/app.git`, "auto")).toEqual({
      kind: "gitea",
      api: `${origin}/api/v1`,
      project: "acme/app",
    });
    expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual(["GET /api/v1/version"]);
    expect(asked[0]?.headers.authorization).toBeUndefined();
  });

  it("is recognised below a path of its host", async () => {
    const { origin } = await serve("/git/api/v1/version", 200, '{"version":"1.24.6"}');
    expect(await findForge(`${origin}/git/acme/app.git`, "auto")).toMatchObject({
      api: `${origin}/git/api/v1`,
      project: "acme/app",
    });
  });

  it.each([
    ["nothing there", 404, "{}"],
    ["a closed API", 403, '{"version":"1.24.6"}'],
    ["a page", 200, "<html>"],
    ["another API", 200, '{"version":7}'],
    ["other words", 200, '{"version":"latest"}'],
    ["nothing", 200, "null"],
    ["another place", 302, ""],
  ])("is not made up of %s", async (_what, status, body) => {
    const { origin } = await serve("/api/v1/version", status, body);
    expect(await findForge(`${origin}/acme/app.git`, "auto")).toBeUndefined();
  });

  it("is not asked if it is known, or cannot be one", async () => {
    const { asked, origin } = await serve("/api/v1/version", 200, '{"version":"1.24.6"}');
    expect(await findForge(`${origin}/acme/app.git`, "gitlab")).toMatchObject({ kind: "gitlab" });
    expect(await findForge(`${origin}/app.git`, "auto")).toBeUndefined();
    expect(await findForge("file:///srv/acme/app.git", "auto")).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it("is not known where nothing answers, and a stop passes through", async () => {
    expect(await findForge("http://127.0.0.1:1/acme/app.git", "auto")).toBeUndefined();
    const { origin } = await serve("/api/v1/version", 200, '{"version":"1.24.6"}');
    const stopped = AbortSignal.abort(new Error("stopped"));
    await expect(findForge(`${origin}/acme/app.git`, "auto", stopped)).rejects.toThrow("stopped");
  });
});
