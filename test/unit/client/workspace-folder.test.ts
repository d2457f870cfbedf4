import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { readFolder } from "../../../client/workspace/workspace-folder.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

const put = (path: string, text = "") => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};

it("selects files by .gitignore, nested ones too, without node_modules", async () => {
  put(".gitignore", "*.log\n/build/\n");
  put("a.log");
  put("build/x");
  put("sub/build/kept");
  put("sub/.gitignore", "!keep.log\nsecret\n");
  put("sub/keep.log");
  put("sub/secret");
  put("node_modules/p/index.js");
  put(".git/HEAD", "ref: refs/heads/main\n");
  symlinkSync("a", join(folder, "link"));
  const { files } = await readFolder(folder);
  expect(files.filter(({ kind }) => kind !== "folder").map(({ path }) => path)).toEqual([
    ".git/HEAD",
    ".gitignore",
    "link",
    "sub/.gitignore",
    "sub/build/kept",
    "sub/keep.log",
  ]);
});

it("refuses what is not a folder as wrong usage", async () => {
  put("file");
  for (const path of ["none", "file"]) {
    await expect(readFolder(join(folder, path))).rejects.toMatchObject({ exitCode: 2 });
  }
});

it("copies a repository like a clone: without credentials, hooks or programs, and reports each", async () => {
  put(
    ".git/config",
    '[remote "origin"]\n\turl = https://me:secret-1@example.org/a.git\n' +
      '[http "https://example.org/"]\n\textraheader = AUTHORIZATION: basic secret-2\n[credential]\n\thelper = store\n',
  );
  put(".git/HEAD", "ref: refs/heads/main\n");
  put(
    ".git/logs/HEAD",
    `${"0".repeat(40)} ${"1".repeat(40)} a <a@b.c> 1 +0000\tclone: from https://secret-3@example.org/\n`,
  );
  put(".git/modules/lib/HEAD", "ref: refs/heads/main\n");
  put(".git/modules/lib/config", '[remote "origin"]\n\turl = https://secret-4@example.org/lib.git\n');
  put(".git/credentials", "https://me:secret-5@example.org\n");
  put(".git/hooks/pre-push", "curl -H 'secret-6'\n");
  put("mirror.git/HEAD", "ref: refs/heads/main\n");
  put("mirror.git/objects/x");
  put("mirror.git/refs/x");
  put("mirror.git/config", '[remote "origin"]\n\turl = https://secret-7@example.org/m.git\n');
  const { files, notes } = await readFolder(folder);
  const all = files
    .map((file) => (file.kind === "file" ? Buffer.from(file.bytes).toString() : ""))
    .join("\n");
  expect(all).not.toContain("secret");
  expect(all).toContain('url = "https://example.org/a.git"');
  expect(files.map(({ path }) => path)).toContain("mirror.git/HEAD");
  expect(notes).toHaveLength(1);
  expect(notes[0]).toMatch(
    /^The repository goes into the sandbox as a clone would have it, without .*credentials/,
  );
  expect(notes[0]).not.toContain("secret");
});

it("reports files that usually contain secrets, unless they are ignored or templates", async () => {
  put(".gitignore", "/.env.local\n");
  for (const path of [
    ".env",
    ".env.local",
    ".env.example",
    "api/.env.production",
    "id_ed25519",
    "env",
    "a.env.ts",
  ])
    put(path);
  const { notes } = await readFolder(folder);
  expect(notes).toEqual([
    expect.stringMatching(/^Warning: \.env, api\/\.env\.production, id_ed25519 may hold secrets/),
    "Not copied: .env.local.",
  ]);
  rmSync(join(folder, ".env"));
  rmSync(join(folder, "api"), { recursive: true });
  rmSync(join(folder, "id_ed25519"));
  expect((await readFolder(folder)).notes).toEqual(["Not copied: .env.local."]);
});

it.each([
  "prod.env",
  ".env-local",
  "a/.netrc",
  "_netrc",
  ".aws/credentials",
  ".aws/config",
  "x/.ssh/id_work",
  ".pgpass",
  ".docker/config.json",
  ".dockercfg",
  ".kube/config",
  "kubeconfig.yaml",
  "dev.kubeconfig",
  "secrets.yml",
  ".config/gcloud/access_tokens.db",
  "service-account.json",
  ".config/gh/hosts.yml",
  "release.jks",
  "cert.p12",
  ".cargo/credentials.toml",
  "terraform.tfstate",
  ".vault-token",
  "config/master.key",
  "credentials.json",
])("warns of %s by its name", async (path) => {
  put(path, "s3cret-content");
  const { notes } = await readFolder(folder);
  expect(notes).toEqual([expect.stringContaining(`Warning: ${path} may hold secrets`)]);
  expect(notes.join()).not.toContain("s3cret-content");
});

it.each([
  [".npmrc", "//registry.example/:_authToken=npm_abc\n"],
  [".npmrc", "_auth = dXNlcjpwYXNz\n"],
  [".yarnrc.yml", 'npmAuthToken: "abc"\n'],
  ["pip.conf", "index-url = https://user:word@pypi.example/simple\n"],
  [".m2/settings.xml", "<server><password>word</password></server>"],
  ["deploy/tls.pem", "subject=x\n-----BEGIN RSA PRIVATE KEY-----\nMII\n"],
  ["notes", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3B\n"],
])("warns of %s by what it contains, and does not show it", async (path, text) => {
  put(path, text);
  const { notes } = await readFolder(folder);
  expect(notes).toEqual([expect.stringContaining(`Warning: ${path} may hold secrets`)]);
  expect(notes.join()).not.toMatch(/abc|word|MII|b3B/);
});

it.each([
  [".npmrc", "registry=https://registry.example/\n//registry.example/:_authToken=${NPM_TOKEN}\n"],
  ["ca.pem", "-----BEGIN CERTIFICATE-----\nMII\n"],
  [".ssh/id_work.pub", "ssh-ed25519 AAAA"],
  ["keys.ts", 'const isKey = (text: string) => text.includes("-----BEGIN PRIVATE KEY-----");\n'],
  [".env.template", "KEY=\n"],
  ["src/environment.ts", ""],
])("does not warn of %s, which holds none", async (path, text) => {
  put(path, text);
  expect((await readFolder(folder)).notes).toEqual([]);
});
