/** Builds the sandbox image without an image registry: mmdebstrap installs a Debian system, which Docker imports. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import type Dockerode from "dockerode";
import { cutTail } from "../../../activities/text/cut.ts";
import { aptInstall, MAX_LOG_BYTES, type AptSource, findAptSource } from "../apt.ts";
import { childEnvironment, findOnPath, run } from "../processes.ts";
import { allOrFirstFailure, type Say, slowly } from "../progress.ts";
import { registriesOfMachine } from "../../registries/machine-registries.ts";

/** The Debian release that the Dockerfile uses. */
const SUITE = "trixie";
/** Is on disk, unlike /tmp on many machines: up to 2.5 GB are needed temporarily. */
const WORK_FOLDER = "/var/tmp";
/**
 * From Node's long-term line 24 (until 2028-04), as in the Dockerfile: npm's registry has no release of line 26 since that
 * line became long-term (2026-11). npm is the newest of its line 11.
 */
const NODE_VERSION = "24.21.0";
const NPM_VERSION = "11.21.2";
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** mmdebstrap takes 35 s for the usual image on two busy cores; on a slow mirror, the full one may take far longer. */
const TIMEOUT_MS = 45 * 60_000;
const TOOL = "mmdebstrap";
/** The npm package that contains Node for this machine. */
const PROGRAM = `node-linux-${process.arch}`;
export interface BootstrapOptions {
  readonly docker: Dockerode;
  readonly tag: string;
  readonly say: Say;
  readonly mayInstall: boolean;
  /** With Go, Rust and a JDK. */
  readonly full: boolean;
}

/** Why an image cannot be built this way on this machine, or undefined if it can. */
export function bootstrapObstacle(mayInstall: boolean): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return `${TOOL} needs root on Linux`;
  // It is a program for apt: without that it is of no use.
  if (findOnPath("apt-get") === undefined) return `${TOOL} needs apt-get, which is not there`;
  if (findOnPath(TOOL) !== undefined) return undefined;
  return mayInstall ? undefined : `${TOOL} is not installed, and LONGHAUL_NO_INSTALL is set`;
}

/** Builds the image `tag`: takes a minute or two on two cores, the full image longer. Leaves nothing else behind. */
export async function bootstrapImage(options: BootstrapOptions): Promise<void> {
  const { docker, tag, say, mayInstall } = options;
  if (findOnPath(TOOL) === undefined && mayInstall)
    await aptInstall(say, `Installing ${TOOL} with apt-get: it makes the sandbox image`, [TOOL]);
  const work = await mkdtemp(join(WORK_FOLDER, "longhaul-image-"));
  const root = join(work, "root");
  const node = join(work, "node");
  try {
    await allOrFirstFailure([
      layOut(root, options),
      slowly(say, `Sandbox image: fetching Node ${NODE_VERSION} and npm ${NPM_VERSION}`, () =>
        fetchNode(node),
      ),
    ]);
    await slowly(say, "Sandbox image: adding Node, npm, pnpm, yarn and uv (usually 15 to 30 s)", async () => {
      await addNode(node, root);
      await setUp(root);
    });
    await slowly(say, `Sandbox image: importing it into Docker as ${tag} (usually 10 to 20 s)`, () =>
      importFolder(docker, root, tag),
    );
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Installs the Debian system, or, if that is unavailable, one of the machine's own release. */
async function layOut(root: string, { say, full }: BootstrapOptions): Promise<void> {
  const lists = ["packages.txt", ...(full ? ["packages-full.txt"] : [])];
  const packages = (await Promise.all(lists.map(readBeside)))
    .join("\n")
    .split("\n")
    .filter((line) => line !== "");
  const sources = packageSources();
  for (const [at, source] of sources.entries()) {
    try {
      const usually = full ? "" : ", usually 30 to 90 s";
      const what = `Sandbox image: laying out ${source.suite} with ${packages.length} packages (${TOOL}${usually})`;
      await slowly(say, what, () =>
        run(TOOL, layoutArguments(root, packages, source), {
          env: { ...childEnvironment("installer"), PATH: SYSTEM_PATH },
          maxBuffer: MAX_LOG_BYTES,
          timeout: TIMEOUT_MS,
        }),
      );
      return;
    } catch (error) {
      // After a timeout, another release would not be faster.
      if (at === sources.length - 1 || (error as { killed?: boolean }).killed === true) throw error;
      await rm(root, { recursive: true, force: true });
    }
  }
}

/** A release and, if known, the address of its packages; without one, mmdebstrap uses its default. */
type PackageSource = Pick<AptSource, "suite"> & Partial<AptSource>;

/** From the machine's own mirror, which has all releases of its distribution. */
function packageSources(): PackageSource[] {
  const machine = machineSource();
  if (machine === undefined) return [{ suite: SUITE }];
  if (machine.suite === SUITE || !machine.isDebian) return [machine];
  return [{ ...machine, suite: SUITE }, machine];
}

/** The machine's own release, from the machine's package source. */
function machineSource(): (AptSource & { readonly isDebian: boolean }) | undefined {
  try {
    const release = readFileSync("/etc/os-release", "utf8");
    const codename = /^VERSION_CODENAME=(\S+)/m.exec(release)?.[1] ?? "";
    const folder = "/etc/apt/sources.list.d";
    const files = ["/etc/apt/sources.list"].concat(
      existsSync(folder)
        ? readdirSync(folder)
            .filter((name) => /\.(list|sources)$/.test(name))
            .map((name) => join(folder, name))
        : [],
    );
    const texts = files.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8"));
    const source = findAptSource(texts, codename);
    return source === undefined ? undefined : { ...source, isDebian: /^ID="?debian"?$/m.test(release) };
  } catch {
    return undefined;
  }
}

/** Packages without a valid signature are refused by apt, which does the work. */
function layoutArguments(root: string, packages: readonly string[], source: PackageSource): string[] {
  const { suite, components, keyring, address } = source;
  return [
    "--variant=minbase",
    "--quiet",
    `--include=${packages.join(",")}`,
    ...(components === undefined ? [] : [`--components=${components.join(",")}`]),
    ...(keyring !== undefined && existsSync(keyring) ? [`--keyring=${keyring}`] : []),
    suite,
    root,
    ...(address === undefined ? [] : [address]),
  ];
}

/** Fetches Node from npm's registry, like our own packages: Debian's Node is past its end, and its npm has 400 packages. */
async function fetchNode(folder: string): Promise<void> {
  const npm = npmCommand();
  const options = ["--global", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error"];
  await run(
    npm.command,
    [...npm.args, "install", ...options, `${PROGRAM}@${NODE_VERSION}`, `npm@${NPM_VERSION}`],
    {
      env: childEnvironment("installer"),
      maxBuffer: MAX_LOG_BYTES,
      timeout: TIMEOUT_MS,
    },
  );
}

/** Moves what `fetchNode` fetched into the system. setup.sh creates npm's links, as it does in `docker build`. */
async function addNode(folder: string, root: string): Promise<void> {
  const modules = join(folder, "lib", "node_modules");
  const local = join(root, "usr", "local");
  for (const [from, to] of [
    [join(modules, PROGRAM, "bin", "node"), join(local, "bin", "node")],
    [join(modules, PROGRAM, "include", "node"), join(local, "include", "node")],
    [join(modules, "npm"), join(local, "lib", "node_modules", "npm")],
  ] as const) {
    await mkdir(dirname(to), { recursive: true });
    await rename(from, to);
  }
}

/** The npm that started this process, or the one on PATH. */
function npmCommand(): { readonly command: string; readonly args: readonly string[] } {
  const running = process.env["npm_execpath"];
  return running?.endsWith("npm-cli.js") === true
    ? { command: process.execPath, args: [running] }
    : { command: "npm", args: [] };
}

/** Fetches packages from this machine's registries, as the person's own tools would. */
async function setUp(root: string): Promise<void> {
  const { registries, certificates } = registriesOfMachine(process.env);
  const file = "/tmp/longhaul-certificates.pem";
  const trust = Object.fromEntries(["NODE_EXTRA_CA_CERTS", "PIP_CERT"].map((name) => [name, file]));
  if (certificates !== undefined) {
    const known = await readFile(join(root, "etc/ssl/certs/ca-certificates.crt"), "utf8");
    await writeFile(join(root, file), `${known}\n${certificates}`);
  }
  const child = spawn("chroot", [root, "sh", "-s"], {
    env: {
      ...proxiesOf(childEnvironment("installer")),
      PATH: SYSTEM_PATH,
      DEBIAN_FRONTEND: "noninteractive",
      NPM_CONFIG_REGISTRY: registries.npm?.[0],
      PIP_INDEX_URL: registries.pip?.[0],
      ...(certificates === undefined ? {} : trust),
    },
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.stdin.end(await readBeside("setup.sh"));
  await finished(child, "setting up the sandbox image");
  await rm(join(root, file), { force: true });
}

const proxiesOf = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => /_proxy$/i.test(name)));

async function importFolder(docker: Dockerode, root: string, tag: string): Promise<void> {
  const child = spawn("tar", ["--numeric-owner", "-C", root, "-c", "."], {
    env: childEnvironment("service"),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [repo, version] = splitTag(tag);
  const packed = finished(child, "packing the sandbox image");
  const changes = (await readBeside("Dockerfile"))
    .split("\n")
    .filter((line) => /^(ENV|WORKDIR|CMD) /.test(line));
  const progress = await docker.importImage(child.stdout, { repo, tag: version, changes });
  await Promise.all([packed, followProgress(docker, progress)]);
}

interface EngineWord {
  readonly error?: string;
}

/** Waits until the engine has finished. @throws Error with the engine's message if it failed */
export async function followProgress(docker: Dockerode, progress: NodeJS.ReadableStream): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, (error: Error | null, lines: readonly EngineWord[]) => {
      // The library reports a failure in the engine as an ordinary line.
      const failed = lines.find((line) => line.error !== undefined)?.error;
      if (error !== null) reject(error);
      else if (failed === undefined) resolve();
      else reject(new Error(failed));
    });
  });
}

/** Splits `name:version`, where the name may include a registry's port. */
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
