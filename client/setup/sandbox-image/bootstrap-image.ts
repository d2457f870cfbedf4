/** The sandbox image without an image registry: a Debian system laid out by debootstrap, imported into Docker. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type Dockerode from "dockerode";
import { cutTail } from "../../../activities/contract/cut-text.ts";
import { aptInstall, MAX_LOG_BYTES } from "../apt.ts";
import { childEnvironment } from "../environment.ts";
import { findOnPath, run } from "../processes.ts";
import { type Say, slowly } from "../progress.ts";
import { type AptSource, findAptSource } from "./apt-source.ts";

/** The release of the Dockerfile, where the machine's own is not known. */
const DEFAULT_SUITE = "bookworm";
/** On a disk, unlike /tmp on many machines: it takes 900 MB for a while. */
const WORK_FOLDER = "/var/tmp";
/** Of Node's long-term line 24 (until 2028-04), as in the Dockerfile; npm is the newest of its line 11 (2026-11). */
const NODE_VERSION = "24.21.0";
const NPM_VERSION = "11.21.2";
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const TIMEOUT_MS = 15 * 60_000;
/** As in the Dockerfile. */
const CHANGES = ["ENV LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin", "WORKDIR /workspace", 'CMD ["bash"]'];

export interface BootstrapOptions {
  readonly docker: Dockerode;
  readonly tag: string;
  readonly say: Say;
  readonly mayInstall: boolean;
}

/** Why an image cannot be made this way here, or undefined where it can. */
export function bootstrapObstacle(mayInstall: boolean): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "debootstrap needs root on Linux";
  if (findOnPath("debootstrap") !== undefined) return undefined;
  if (findOnPath("apt-get") === undefined) return "debootstrap is not installed, and there is no apt-get";
  return mayInstall ? undefined : "debootstrap is not installed, and LONGHAUL_NO_INSTALL is set";
}

/** Makes the image `tag`: about a minute. Leaves nothing else behind. */
export async function bootstrapImage({ docker, tag, say, mayInstall }: BootstrapOptions): Promise<void> {
  if (findOnPath("debootstrap") === undefined && mayInstall)
    await aptInstall(say, "Installing debootstrap with apt-get: it makes the sandbox image", ["debootstrap"]);
  const packages = (await readBeside("packages.txt")).split("\n").filter((line) => line !== "");
  const root = await mkdtemp(join(WORK_FOLDER, "longhaul-image-"));
  try {
    const source = machineSource();
    const suite = source?.suite ?? DEFAULT_SUITE;
    await slowly(
      say,
      `Sandbox image: laying out ${suite} with ${packages.length} packages (debootstrap)`,
      () =>
        run("debootstrap", debootstrapArguments(root, suite, packages, source), {
          env: { ...childEnvironment("installer"), PATH: SYSTEM_PATH },
          maxBuffer: MAX_LOG_BYTES,
          timeout: TIMEOUT_MS,
        }),
    );
    await slowly(say, `Sandbox image: adding Node ${NODE_VERSION} and npm ${NPM_VERSION}`, () =>
      addNode(root),
    );
    await setUp(root);
    await slowly(say, `Sandbox image: importing it into Docker as ${tag}`, () =>
      importFolder(docker, root, tag),
    );
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** The machine's own release from where the machine gets its packages; undefined = debootstrap's default. */
function machineSource(): AptSource | undefined {
  try {
    const codename = /^VERSION_CODENAME=(\S+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "";
    const folder = "/etc/apt/sources.list.d";
    const files = ["/etc/apt/sources.list"].concat(
      existsSync(folder)
        ? readdirSync(folder)
            .filter((name) => /\.(list|sources)$/.test(name))
            .map((name) => join(folder, name))
        : [],
    );
    const texts = files.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8"));
    return findAptSource(texts, codename);
  } catch {
    return undefined;
  }
}

function debootstrapArguments(
  root: string,
  suite: string,
  packages: readonly string[],
  source: AptSource | undefined,
): string[] {
  const keyring = source?.keyring;
  return [
    "--variant=minbase",
    `--include=${packages.join(",")}`,
    ...(source === undefined ? [] : [`--components=${source.components.join(",")}`]),
    ...(keyring !== undefined && existsSync(keyring) ? [`--keyring=${keyring}`] : []),
    suite,
    root,
    ...(source === undefined ? [] : [source.address]),
  ];
}

/** From npm's registry, which brought our own packages: Debian's Node is past its end, and its npm has 400 packages. */
async function addNode(root: string): Promise<void> {
  const program = `node-linux-${process.arch}`;
  const local = join(root, "usr", "local");
  const npm = npmCommand();
  const options = ["--global", "--prefix", local, "--no-audit", "--no-fund", "--loglevel=error"];
  const packages = [`${program}@${NODE_VERSION}`, `npm@${NPM_VERSION}`];
  await run(npm.command, [...npm.args, "install", ...options, ...packages], {
    env: childEnvironment("installer"),
    maxBuffer: MAX_LOG_BYTES,
    timeout: TIMEOUT_MS,
  });
  // setup.sh makes the links of npm, as it does after `docker build`.
  for (const name of ["npm", "npx", "node"]) await rm(join(local, "bin", name), { force: true });
  await rename(join(local, "lib", "node_modules", program, "bin", "node"), join(local, "bin", "node"));
  await rm(join(local, "lib", "node_modules", program), { recursive: true });
}

/** The npm that runs us, or the one on PATH. */
function npmCommand(): { readonly command: string; readonly args: readonly string[] } {
  const running = process.env["npm_execpath"];
  return running?.endsWith("npm-cli.js") === true
    ? { command: process.execPath, args: [running] }
    : { command: "npm", args: [] };
}

async function setUp(root: string): Promise<void> {
  const child = spawn("chroot", [root, "sh", "-s"], {
    env: { PATH: SYSTEM_PATH, DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.stdin.end(await readBeside("setup.sh"));
  await finished(child, "setting up the sandbox image");
}

async function importFolder(docker: Dockerode, root: string, tag: string): Promise<void> {
  const child = spawn("tar", ["--numeric-owner", "-C", root, "-c", "."], {
    env: childEnvironment("service"),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [repo, version] = splitTag(tag);
  const packed = finished(child, "packing the sandbox image");
  const progress = await docker.importImage(child.stdout, { repo, tag: version, changes: CHANGES });
  await Promise.all([packed, followProgress(docker, progress)]);
}

/** Waits till the engine has done it. @throws Error with its text where it failed */
export async function followProgress(docker: Dockerode, progress: NodeJS.ReadableStream): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, (error: Error | null) =>
      error === null ? resolve() : reject(error),
    );
  });
}

/** `name:version`, where the name may hold a registry's port. */
function splitTag(tag: string): [string, string] {
  const at = tag.lastIndexOf(":");
  return at > tag.lastIndexOf("/") ? [tag.slice(0, at), tag.slice(at + 1)] : [tag, "latest"];
}

interface Child {
  readonly stderr: Readable;
  once(event: "close", listener: (code: number | null) => void): unknown;
}

async function finished(child: Child, what: string): Promise<void> {
  let trouble = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text: string) => {
    trouble = cutTail(trouble + text, 500);
  });
  const [code] = (await once(child as unknown as NodeJS.EventEmitter, "close")) as [number | null];
  if (code !== 0) throw new Error(`${what} failed (exit code ${code}): ${trouble.trim()}`);
}

const readBeside = (name: string): Promise<string> => readFile(new URL(name, import.meta.url), "utf8");
