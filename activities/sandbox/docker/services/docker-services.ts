/** The Docker adapter of the port to services: each is a container in its sandbox's network namespace, found by name and proved by labels. */
import { Readable } from "node:stream";
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { pack } from "tar-stream";
import { reasonOf } from "../../../contract/errors.ts";
import { fatal } from "../../../contract/failures.ts";
import { shorten } from "../../../text/cut.ts";
import { SandboxLost } from "../../sandbox.ts";
import type { OwnSession } from "../../sandbox-host.ts";
import type {
  HealthAnswer,
  ServiceHost,
  ServiceSpec,
  ServiceHome,
  ServiceState,
} from "../../service-host.ts";
import { ownVolume } from "../docker-containers.ts";
import { statusOf, unavailable, unless } from "../docker-errors.ts";
import { ownerLabels, isOwnedBy, SHORT_ID } from "../profile.ts";
import { frameReader } from "../supervisor-stream.ts";
import { serviceContainers } from "./find-services.ts";
import { serviceImageFacts, takeImage, testArguments } from "./service-image.ts";
import {
  hasSettings,
  isAtHome,
  keptFolders,
  SERVICE_LABEL,
  serviceContainer,
  serviceDifferences,
  serviceLabels,
  serviceOptions,
  serviceVolume,
  type ServiceRequest,
} from "./service-profile.ts";

interface ServicesOptions {
  readonly docker: Dockerode;
  /** Adds whose it is. */
  readonly own: <T extends OwnSession>(owner: T) => Promise<T & OwnSession>;
  readonly engine: () => Promise<{ readonly defaultRuntime: string; readonly appArmor: boolean }>;
  readonly say: (line: string) => void;
}

/** How often another worker may create or remove the same container meanwhile. */
const MAX_ROUNDS = 5;
/** Chosen: a health test that takes longer has not passed; the engine's own default is 30 s. */
const TEST_MS = 10_000;
const MAX_TEST_CHARS = 300;
const MAX_WHY_CHARS = 400;

export function createDockerServices(options: ServicesOptions): ServiceHost {
  const { docker, own } = options;
  /** The container of this start. */
  const atHome = async (unowned: ServiceHome, name: string) => {
    const home = await own(unowned);
    const container = docker.getContainer(serviceContainer(home.sessionId, name));
    const info = await unless([404], () => container.inspect());
    const isThere =
      info !== undefined && isOwnedBy(home, info.Config.Labels) && isAtHome(info.Config.Labels, home);
    return isThere ? { container, info } : undefined;
  };
  return {
    async image({ settings }, signal) {
      await takeImage(docker, settings.image, signal, options.say);
      return (await serviceImageFacts(docker, settings.image)).ports;
    },
    start: async (home, service, files) => startService(options, await own(home), service, files),
    async restart(home, name) {
      const current = await atHome(home, name);
      if (current === undefined) return false;
      return (await unless([404], () => current.container.restart().then(() => true))) === true;
    },
    async states(unowned) {
      const home = await own(unowned);
      const containers = await serviceContainers(docker, home);
      const here = containers.filter(({ Labels: labels }) => isAtHome(labels, home));
      const infos = await Promise.all(
        here.map(({ Id: id }) => unless([404], () => docker.getContainer(id).inspect())),
      );
      return infos.flatMap((info) => (info === undefined ? [] : [stateOf(info)]));
    },
    async test(home, service) {
      const current = await atHome(home, service.name);
      if (current === undefined) return { failed: "its container is gone" };
      const { test, shell } = await serviceImageFacts(docker, current.info.Image);
      const argv = testArguments(service.settings.health.test ?? test, shell);
      return argv === undefined ? "none" : runTest(current.container, argv);
    },
    async log(home, name, lines) {
      const current = await atHome(home, name);
      return current && readLog(current.container, lines);
    },
  };
}

type Started = Awaited<ReturnType<ServiceHost["start"]>>;

async function startService(
  options: ServicesOptions,
  home: ServiceHome,
  service: ServiceSpec,
  files: Parameters<ServiceHost["start"]>[2],
): Promise<Started> {
  const { docker, engine } = options;
  const image = await serviceImageFacts(docker, service.settings.image);
  const sandbox = await sandboxId(docker, home);
  const request: ServiceRequest = { home, service, sandbox, image };
  const { name } = service;
  const container = docker.getContainer(serviceContainer(home.sessionId, name));
  if (service.settings.data === "kept" && keptFolders(service, image).length === 0)
    return { failed: `data is kept, and its image declares no volume: name its folders in dataFolders` };
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const info = await unless([404], () => container.inspect());
    if (info === undefined) {
      await createService(options, request, await files());
      continue;
    }
    if (!isOwnedBy(home, info.Config.Labels) || info.Config.Labels[SERVICE_LABEL] !== name)
      throw refused(info, ["it belongs to another session or program"]);
    // Not of this namespace, which it could not reach any more, or with other settings.
    if (!isAtHome(info.Config.Labels, home) || !hasSettings(info.Config.Labels, service)) {
      await unless([404, 409], () => container.remove({ force: true, v: true }));
      continue;
    }
    const differing = serviceDifferences(info, request, await engine());
    if (differing.length > 0) throw refused(info, differing);
    const facts = { container: info.Id.slice(0, SHORT_ID), ports: portsOf(service, image.ports) };
    if (info.State.Status !== "created") return { ...facts, wasStarted: false };
    const trouble = await startContainer(options, request, container);
    return trouble === undefined ? { ...facts, wasStarted: true } : { failed: trouble };
  }
  return { failed: "its container changes all the time: something else creates or removes it" };
}

const portsOf = ({ settings }: ServiceSpec, declared: readonly number[]): readonly number[] =>
  settings.ports.length > 0 ? settings.ports : declared;

/** @throws SandboxLost if the sandbox is gone */
async function sandboxId(docker: Dockerode, home: ServiceHome): Promise<string> {
  const info = await unless([404], () => docker.getContainer(home.container).inspect());
  if (info === undefined || !isOwnedBy(home, info.Config.Labels))
    throw new SandboxLost("The sandbox was removed while its services were started.");
  return info.Id;
}

/** A container that differs after its creation is removed. @throws SandboxRefused, ImageMissing (fatal) */
async function createService(
  { docker, engine, say }: ServicesOptions,
  request: ServiceRequest,
  files: Readonly<Record<string, Uint8Array>>,
): Promise<void> {
  const { home, service, image } = request;
  const { sessionId } = home;
  for (const folder of keptFolders(service, image))
    await ownVolume(docker, serviceVolume(sessionId, service.name, folder), ownerLabels(home), {
      labels: serviceLabels(home, service.name),
    });
  // 409: another worker was faster.
  const container = await unless([409], () => docker.createContainer(serviceOptions(request)));
  if (container === undefined) return;
  if (Object.keys(files).length > 0)
    await unless([], () => container.putArchive(fileArchive(files), { path: "/" }));
  const info = await unless([404], () => container.inspect());
  const differing = info === undefined ? [] : serviceDifferences(info, request, await engine());
  if (info === undefined || differing.length === 0) {
    say(`service: created ${serviceContainer(sessionId, service.name)} from ${service.settings.image}`);
    return;
  }
  await unless([404, 409], () => container.remove({ force: true, v: true }));
  throw refused(info, differing);
}

const READABLE = 0o444;

/** A tar of files by absolute path, which everyone can read, and which belong to root. */
function fileArchive(files: Readonly<Record<string, Uint8Array>>): Readable {
  const archive = pack();
  for (const [path, bytes] of Object.entries(files))
    archive.entry({ name: path.replace(/^\/+/, ""), mode: READABLE, uid: 0, gid: 0 }, Buffer.from(bytes));
  archive.finalize();
  return Readable.from(archive);
}

/** @returns why its program does not start: the engine's words @throws SandboxLost if its sandbox does not run */
async function startContainer(
  { docker }: ServicesOptions,
  { home }: ServiceRequest,
  container: Dockerode.Container,
): Promise<string | undefined> {
  try {
    await container.start();
    return undefined;
  } catch (error) {
    const status = statusOf(error);
    // Another worker has started it.
    if (status === 304) return undefined;
    if (status === undefined) throw unavailable(error);
    const sandbox = await unless([404], () => docker.getContainer(home.container).inspect());
    if (sandbox?.State.Running !== true)
      throw new SandboxLost("The sandbox ended while its services were started.");
    return shorten(reasonOf(error), MAX_WHY_CHARS);
  }
}

const refused = (info: ContainerInspectInfo, differing: readonly string[]): Error =>
  fatal(
    "SandboxRefused",
    `the container ${info.Name.replace(/^\//, "")} does not match the expected profile of a service, so it is not used: ${differing.join("; ")}. ` +
      "Remove the container, and it will be created again",
  );

function stateOf({ Id: id, State: state, Config: config }: ContainerInspectInfo): ServiceState {
  const facts = { name: config.Labels[SERVICE_LABEL] ?? "", container: id.slice(0, SHORT_ID) };
  if (state.Status === "created") return { ...facts, status: "created" };
  if (state.Running) return { ...facts, status: "running" };
  const ending = state.OOMKilled
    ? "it was killed at its memory limit"
    : `it ended with exit code ${state.ExitCode}`;
  return { ...facts, status: "ended", ending };
}

async function runTest(container: Dockerode.Container, argv: string[]): Promise<HealthAnswer> {
  try {
    const exec = await container.exec({ Cmd: argv, AttachStdout: true, AttachStderr: true });
    const output = await readFrames(await exec.start({}), TEST_MS);
    if (output === undefined) return { failed: `its health test takes longer than ${TEST_MS / 1_000} s` };
    const { ExitCode: code } = await exec.inspect();
    if (code === 0) return "passed";
    const line = shorten(output.trim().split("\n").at(-1) ?? "", MAX_TEST_CHARS);
    return { failed: `its health test ends with exit code ${code}${line === "" ? "" : `: ${line}`}` };
  } catch (error) {
    if (statusOf(error) === undefined) throw unavailable(error);
    // It is not running, or has no such program.
    return { failed: shorten(reasonOf(error), MAX_TEST_CHARS) };
  }
}

/** @returns undefined if the stream does not end in that time */
async function readFrames(stream: NodeJS.ReadableStream, timeoutMs: number): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  const take = frameReader((_channel, bytes) => void pieces.push(bytes));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    (stream as NodeJS.ReadableStream & { destroy(): void }).destroy();
  }, timeoutMs);
  try {
    for await (const chunk of stream) take(chunk as Buffer);
  } catch (error) {
    if (!isLate) throw error;
  } finally {
    clearTimeout(timer);
  }
  return isLate ? undefined : Buffer.concat(pieces).toString("utf8");
}

/** The engine keeps 1 MB of it. */
async function readLog(
  container: Dockerode.Container,
  lines: number | undefined,
): Promise<string | undefined> {
  const bytes = await unless([404], () =>
    container.logs({
      stdout: true,
      stderr: true,
      follow: false,
      tail: lines,
    }),
  );
  if (bytes === undefined) return undefined;
  const pieces: Buffer[] = [];
  frameReader((_channel, piece) => void pieces.push(piece))(bytes);
  return Buffer.concat(pieces).toString("utf8");
}
