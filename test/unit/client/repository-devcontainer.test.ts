import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { devcontainerOfRepository } from "../../../client/setup/repository-check.ts";
import { gitIn, makeRemote, serveGit } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const environment = (own: Readonly<Record<string, string>> = {}) => ({ PATH: process.env["PATH"], ...own });

const devcontainer = JSON.stringify({
  build: { dockerfile: "Dockerfile", context: ".." },
  postCreateCommand: "npm ci",
});

it.each([true, false])(
  "a repository's devcontainer.json is read at a branch, a tag or a commit (trees alone: %s)",
  async (can) => {
    const place = makeRemote({ "README.md": "# Here\n" });
    const commit = place.commit("side", { ".devcontainer/devcontainer.json": devcontainer });
    gitIn(place.folder, "tag", "v1", commit);
    gitIn(place.folder, "config", "uploadpack.allowFilter", String(can));
    gitIn(place.folder, "config", "uploadpack.allowAnySHA1InWant", "true");
    const server = await serveGit(place, "password");
    const url = `${server.origin}/acme/app.git`;
    for (const ref of ["side", "v1", commit])
      expect(
        await devcontainerOfRepository(url, ref, environment({ LONGHAUL_GIT_TOKEN: "password" })),
      ).toMatchObject({
        build: { dockerfile: ".devcontainer/Dockerfile", context: "." },
        setup: ["npm ci"],
      });
    await expect(devcontainerOfRepository(url, "side", environment())).rejects.toMatchObject({ exitCode: 4 });
  },
);

it("a repository without one is wrong usage, and a link does not count", async () => {
  const place = makeRemote({ "real.json": devcontainer });
  const read = () => devcontainerOfRepository(place.url, undefined, environment());
  await expect(read()).rejects.toMatchObject({ exitCode: 2 });
  const link = emptyFolder();
  gitIn(link, "clone", "-q", place.folder, ".");
  symlinkSync("real.json", join(link, ".devcontainer.json"));
  gitIn(link, "add", "-A");
  gitIn(link, "commit", "-qm", "Link");
  gitIn(link, "push", "-q", "origin", "main");
  await expect(read()).rejects.toMatchObject({ exitCode: 2 });
  place.commit("main", { ".devcontainer/devcontainer.json": devcontainer });
  expect(await read()).toMatchObject({ setup: ["npm ci"] });
});
