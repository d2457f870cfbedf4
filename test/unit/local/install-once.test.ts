/** Commands that are started at the same moment on a fresh clone, with an npm of ours that waits for a file. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { until } from "../../../temporal/patience.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const SCRIPTS = fileURLToPath(new URL("../../../scripts", import.meta.url));
const NPM = `
const { appendFileSync, existsSync, mkdirSync, rmSync } = require("node:fs");
rmSync("node_modules", { recursive: true, force: true });
appendFileSync("npm.pids", process.pid + "\\n");
appendFileSync("npm.args", process.argv.slice(2).join(" ") + "\\n");
setInterval(() => {
  if (!existsSync("go")) return;
  mkdirSync("node_modules/wanted", { recursive: true });
  require("node:fs").writeFileSync("node_modules/wanted/package.json", "{}");
  process.exit();
}, 20);
`;

let clone: string;
beforeEach(() => {
  clone = emptyFolder();
  cpSync(SCRIPTS, join(clone, "scripts"), { recursive: true });
  writeFileSync(join(clone, "package.json"), JSON.stringify({ devDependencies: { wanted: "1.0.0" } }));
  writeFileSync(join(clone, "package-lock.json"), "{}");
  writeFileSync(join(clone, "npm-cli.js"), NPM);
});

const letNpmEnd = () => writeFileSync(join(clone, "go"), "");

interface Command {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly stderr: () => string;
}

function start(environment: Readonly<Record<string, string>> = {}): Command {
  const script = join(clone, "scripts", "node.mjs");
  const child = spawn(process.execPath, [script, "--eval", "console.log('started')"], {
    env: { PATH: process.env["PATH"], npm_execpath: join(clone, "npm-cli.js"), ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
    letNpmEnd();
  });
  let text = "";
  child.stderr.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  return { child, ended: once(child, "close"), stderr: () => text };
}

function npmPids(): number[] {
  const file = join(clone, "npm.pids");
  // The shell makes the file before it writes the line.
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text.split("\n").slice(0, -1).map(Number);
}

const isWaiting = (command: Command) => until(() => command.stderr().includes("Waiting"), 20_000);

test("the second waits for the first, says so in one line, and does not install again", async () => {
  const first = start();
  await until(() => npmPids().length === 1, 20_000);
  const second = start();
  await isWaiting(second);
  letNpmEnd();
  await Promise.all([first.ended, second.ended]);
  expect([first.child.exitCode, second.child.exitCode]).toEqual([0, 0]);
  expect(second.stderr()).toBe(
    `Waiting for another command (process ${first.child.pid}) to install the packages …\n`,
  );
  expect(npmPids()).toHaveLength(1);
  expect(readdirSync(join(clone, ".longhaul"))).toEqual([]);
});

test("a first one that was killed does not block; its npm is waited for", async () => {
  const first = start();
  await until(() => npmPids().length === 1, 20_000);
  first.child.kill("SIGKILL");
  const [npm = 0] = npmPids();
  const second = start();
  await isWaiting(second);
  expect(second.stderr()).toContain(`(process ${npm})`);
  process.kill(npm, "SIGKILL");
  letNpmEnd();
  await second.ended;
  expect(second.child.exitCode).toBe(0);
  expect(npmPids()).toHaveLength(2);
});

test("everything is installed whatever the environment leaves out, again if a part is gone", async () => {
  letNpmEnd();
  const first = start({ NODE_ENV: "production", npm_config_omit: "dev" });
  await first.ended;
  expect(first.child.exitCode).toBe(0);
  const wanted = "ci --no-audit --no-fund --include=dev --include=optional --include=peer";
  expect(readFileSync(join(clone, "npm.args"), "utf8")).toContain(wanted);
  await start().ended;
  expect(npmPids()).toHaveLength(1);
  rmSync(join(clone, "node_modules", "wanted"), { recursive: true });
  await start().ended;
  expect(npmPids()).toHaveLength(2);
});

test("what npm installed as locked is recognised, and installed again if the lock differs", async () => {
  const wanted = { version: "1.0.0", integrity: "sha512-a" };
  const locked = (entry: object) =>
    JSON.stringify({
      packages: {
        "": {},
        "node_modules/wanted": entry,
        "node_modules/elsewhere": { ...wanted, optional: true },
      },
    });
  writeFileSync(join(clone, "package-lock.json"), locked(wanted));
  mkdirSync(join(clone, "node_modules", "wanted"), { recursive: true });
  writeFileSync(join(clone, "node_modules", "wanted", "package.json"), "{}");
  const list = { packages: { "node_modules/wanted": wanted } };
  writeFileSync(join(clone, "node_modules", ".package-lock.json"), JSON.stringify(list));
  await start().ended;
  expect(npmPids()).toEqual([]);
  letNpmEnd();
  writeFileSync(join(clone, "package-lock.json"), locked({ ...wanted, integrity: "sha512-b" }));
  await start().ended;
  expect(npmPids()).toHaveLength(1);
});
