import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { resolveConfig } from "../../../client/config/config.ts";
import { parseDevcontainer, readDevcontainer } from "../../../client/config/devcontainer.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const of = (value: object | string) =>
  parseDevcontainer(typeof value === "string" ? value : JSON.stringify(value), "devcontainer.json");

test("comments and trailing commas are allowed, and a string that looks like one is unchanged", () => {
  const text = `{
    // An image
    "image": "registry.test//node:24", /* of
    a kind */
    "postCreateCommand": "echo 'a, ] // b' /* c */",
  }`;
  expect(of(text)).toMatchObject({
    image: "registry.test//node:24",
    setup: ["echo 'a, ] // b' /* c */"],
    notes: [],
  });
});

test("commands are a text, a list of words or an object of these, in the order of their phases", () => {
  const { setup } = of({
    postCreateCommand: { web: "npm ci", py: ["pip", "install", "-r", "it's here.txt"] },
    onCreateCommand: "cd ${containerWorkspaceFolder}",
    updateContentCommand: [],
  });
  expect(setup).toEqual(["cd /workspace", "npm ci", "pip install -r 'it'\\''s here.txt'"]);
});

test("variables of the person's machine are left out, and the omission is reported", () => {
  const { env, notes } = of({
    containerEnv: { A: "1", TOKEN: "${localEnv:GITHUB_TOKEN}" },
    remoteEnv: { A: "2", GONE: null, LONGHAUL_X: "3", HERE: "${containerWorkspaceFolder}/bin" },
    features: {},
    mounts: [],
    forwardPorts: [3000, "db:5432"],
  });
  expect(env).toEqual({ A: "2", HERE: "/workspace/bin" });
  expect(notes).toEqual([
    "devcontainer.json: left out, because a sandbox has no such setting: mounts.",
    expect.stringMatching(/^devcontainer.json: features are left out: .* Install what they provide/),
    "devcontainer.json: TOKEN is left out: the value of ${localEnv:GITHUB_TOKEN} is not known here. Set it in sandbox.env.",
    "devcontainer.json: LONGHAUL_X is left out: not a valid variable name.",
    "The project listens on port 3000: longhaul forward ID 3000",
    "The project listens on port db:5432: longhaul forward ID 5432",
  ]);
});

test("an unsupported setting is refused, with what to do instead", () => {
  expect(() => of({ build: { dockerfile: "../../Dockerfile" } })).toThrow(
    /build.dockerfile: expected a path/,
  );
  expect(() => of({ build: { dockerfile: "Dockerfile", context: "../.." } })).toThrow(/build.context/);
  expect(() => of({ dockerComposeFile: "a.yml" })).toThrow(/dockerComposeFile without service/);
  expect(() => of({ dockerComposeFile: ["a.yml", "b.yml", "c.yml"], service: "app" })).toThrow(
    /names 3 files, and one is read/,
  );
  expect(() => of({ dockerComposeFile: "a.yml", service: "app" })).toThrow(
    /not read from a remote repository/,
  );
  expect(() => of("{")).toThrow(/not JSON with comments/);
  expect(() => of({ postCreateCommand: 3 })).toThrow(/postCreateCommand/);
});

test("a Dockerfile and its context are paths of the workspace", () => {
  const args = { A: "1", HOME: "${localEnv:HOME}" };
  const given = of({
    build: { dockerfile: "Dockerfile", context: "..", args, target: "dev", options: ["--pull"] },
  });
  expect(given.build).toEqual({
    dockerfile: ".devcontainer/Dockerfile",
    context: ".",
    args: { A: "1" },
    target: "dev",
  });
  expect(given.notes).toEqual([
    expect.stringContaining("build.options is left out"),
    expect.stringContaining("build.args.HOME is left out"),
  ]);
  expect(of({ dockerFile: "Dockerfile" }).build).toMatchObject({ context: ".devcontainer" });
  expect(of({ image: "a", build: { dockerfile: "Dockerfile" } }).build).toBeUndefined();
});

test("its image overrides the person's, its commands run first, the person's variables win", () => {
  const folder = emptyFolder();
  expect(() => readDevcontainer(folder)).toThrow(/has no \.devcontainer/);
  mkdirSync(join(folder, ".devcontainer"));
  const given = { image: "node:24", postCreateCommand: "npm ci", remoteEnv: { A: "theirs", B: "theirs" } };
  writeFileSync(join(folder, ".devcontainer/devcontainer.json"), JSON.stringify(given));
  writeFileSync(
    join(folder, "mine.yaml"),
    "sandbox: {image: mine:1, setup: {commands: [make], optional: true}, env: {A: mine}}\n",
  );
  const container = readDevcontainer(folder);
  const { sandbox } = resolveConfig(
    { config: "mine.yaml", fromDevcontainer: container },
    { SANDBOX_IMAGE: "env:1" },
    folder,
  ).run;
  expect(sandbox).toMatchObject({
    image: "node:24",
    setup: { commands: ["npm ci", "make"], optional: true },
    env: { A: "mine", B: "theirs" },
  });
});

test("of a compose file one service is the sandbox, and the others start beside it", () => {
  const workspace = emptyFolder();
  mkdirSync(join(workspace, ".devcontainer"));
  const write = (compose: string, more: object = {}) => {
    writeFileSync(join(workspace, ".devcontainer/compose.yml"), compose);
    const file = {
      dockerComposeFile: ["compose.yml"],
      service: "app",
      containerEnv: { A: "of the file" },
      ...more,
    };
    writeFileSync(join(workspace, ".devcontainer/devcontainer.json"), JSON.stringify(file));
    return readDevcontainer(workspace);
  };
  const APP = `
services:
  app:
    build: {context: .., dockerfile: docker/Dockerfile, args: {V: 1}, target: dev}
    command: sleep infinity
    volumes: ["..:/workspaces/app:cached"]
    environment: {A: of compose, B: two}
    privileged: true
    depends_on: [db]
  db: {image: "postgres:17", environment: {POSTGRES_PASSWORD: test}, ports: ["5432"]}
  cache: {image: "redis:8", depends_on: [app]}
`;
  const read = write(APP);
  expect(read).toMatchObject({
    image: undefined,
    build: { dockerfile: "docker/Dockerfile", context: ".", args: { V: "1" }, target: "dev" },
    env: { A: "of the file", B: "two" },
  });
  expect(Object.keys(read.services ?? {})).toEqual(["db", "cache"]);
  expect(read.notes).toEqual([
    "compose.yml: left out of app, which is the sandbox: privileged. Set them in sandbox of a file of your own.",
  ]);
  expect(Object.keys(write(APP, { runServices: ["db"] }).services ?? {})).toEqual(["db"]);
  expect(write(APP, { image: "node:24" })).toMatchObject({ image: "node:24", build: undefined });
  expect(() => write(APP, { service: "web" })).toThrow("compose.yml has no service web");
  expect(() => write(APP.replace("ports:", "privileged: true, ports:"))).toThrow(
    /service "db" uses privileged, which a sandbox cannot have/,
  );
});
