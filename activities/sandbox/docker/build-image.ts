/**
 * Builds a session's image from a Dockerfile in its workspace, with the engine's own builder. What its commands may reach and use is
 * what the session's sandbox may, or less: no interface but loopback, with the egress proxy where hosts are listed.
 */
import { randomInt } from "node:crypto";
import type { Readable } from "node:stream";
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import { cutTail } from "../../text/cut.ts";
import { readDockerfile, withOwnLayers } from "../dockerfile.ts";
import type { BuildOrder, BuildResult, SandboxSpec } from "../sandbox-host.ts";
import { checkedContext, ContextRefused } from "./checked-context.ts";
import { statusOf, unavailable, unless } from "./docker-errors.ts";
import { egressEnvironment, networkMode, sandboxName, SHM_BYTES } from "./profile.ts";
import { runOnce } from "./run-program.ts";
import { keptLabels, nameKept } from "./set-up-images.ts";

/** The engine counts CPU time in periods of this many microseconds. Source: its default. */
const CPU_PERIOD = 100_000;
/** Only the end of the output is kept. */
const MAX_OUTPUT_CHARS = 100_000;
/** Build arguments that need no ARG in the Dockerfile. Source: Docker's manual. */
const PROXIES = /^(https?|no|all)_proxy=/i;

/** @throws SandboxUnavailable (retryable) if the engine does not answer; the signal's reason if it is aborted */
export async function buildImage(
  docker: Dockerode,
  spec: SandboxSpec,
  { key, ...request }: BuildOrder & { readonly key: string },
  signal: AbortSignal,
): Promise<BuildResult> {
  const labels = await keptLabels(docker, spec);
  const context = checkedContext(request.context, request.dockerfile, (bytes) =>
    sentDockerfile(docker, bytes, request),
  );
  // When its client disconnects, the engine ends the build and removes the build's container.
  const abort = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs), failing(context)]);
  let output = "";
  let error: string | undefined;
  let imageId: string | undefined;
  const limits = await limitProcesses(docker, spec);
  try {
    const answer = await docker.buildImage(context, {
      dockerfile: request.dockerfile,
      buildargs: { ...(spec.network === "listed" ? proxies() : {}), ...request.args },
      ...(request.target === undefined ? {} : { target: request.target }),
      labels,
      networkmode: networkOf(spec),
      shmsize: limits.mark,
      memory: spec.memoryBytes,
      memswap: spec.memoryBytes,
      cpuperiod: CPU_PERIOD,
      cpuquota: Math.round(spec.cpus * CPU_PERIOD),
      rm: true,
      forcerm: true,
      abortSignal: abort,
    });
    for await (const message of messages(answer)) {
      output = cutTail(output + (message.stream ?? ""), MAX_OUTPUT_CHARS);
      error ??= message.error;
      imageId = message.aux?.ID ?? imageId;
    }
  } catch (thrown) {
    signal.throwIfAborted();
    if (context.errored instanceof ContextRefused) return { output, failed: context.errored.message };
    if (abort.aborted)
      return { output, failed: `ended after ${request.timeoutMs / 1_000} s (sandbox.setup.timeout)` };
    // 400 and 500: an error in the Dockerfile, or a command of it that failed.
    if (statusOf(thrown) === undefined) throw unavailable(thrown);
    error = reasonOf(thrown);
  } finally {
    context.destroy();
    limits.end();
  }
  error = limits.failed() ?? error;
  if (error !== undefined || imageId === undefined)
    return {
      output,
      failed: `${error ?? "the build ended without an image"}${spec.network === "bridge" ? OFFLINE : ""}`,
    };
  const built = imageId;
  const failed = await shortcomingOf(docker, built);
  if (failed !== undefined) return { output, failed };
  // Named only after the check: if the worker is killed before it, no session gets an unchecked image.
  await unless([], () => nameKept(docker, built, key));
  return { output };
}

/**
 * The engine's builder gives every RUN the capability for raw frames, which pass the firewall in the sandbox's namespace. So RUN has
 * no interface but loopback: where the sandbox has none either, in the sandbox's namespace, with the egress proxy; else in none.
 */
const networkOf = (spec: SandboxSpec): string =>
  networkMode(spec) === "none" ? `container:${sandboxName(spec.sessionId)}` : "none";

const OFFLINE =
  ". RUN has no network with sandbox.network: bridge, because the builder cannot be kept from sending raw frames; with network: listed it reaches the listed hosts";

/** Aborted when the context fails: the client would wait for the rest of it. */
function failing(context: Readable): AbortSignal {
  const failed = new AbortController();
  context.on("error", () => failed.abort());
  return failed.signal;
}

/** @throws ContextRefused */
async function sentDockerfile(docker: Dockerode, dockerfile: Buffer, request: BuildOrder): Promise<Buffer> {
  await checkDockerfile(docker, dockerfile.toString("utf8"), request);
  const extended = withOwnLayers(dockerfile, request.layers);
  if (extended !== undefined) return extended;
  throw new ContextRefused(`where the stages of ${request.dockerfile} begin cannot be told for sure`);
}

/**
 * Looks at what the engine would do outside the build's containers, before it is asked to build.
 * @throws ContextRefused that names the line
 */
async function checkDockerfile(
  docker: Dockerode,
  text: string,
  { dockerfile, args, refuseImage }: BuildOrder,
): Promise<void> {
  const { refused, images } = readDockerfile(text, args);
  if (refused !== undefined)
    throw new ContextRefused(
      `line ${refused.line} of ${dockerfile}: ${refused.why}. Fetch it with RUN, behind the sandbox's firewall, or put it into the workspace`,
    );
  for (const { line, image } of images) {
    const why = refuseImage(image);
    if (why !== undefined) throw new ContextRefused(`line ${line} of ${dockerfile}: ${why}`);
  }
  for (const { line, image } of images) {
    const triggers = await triggersOf(docker, image);
    const { refused: fetches, images: further } = readDockerfile(triggers.join("\n"), {});
    for (const other of further) {
      const why = refuseImage(other.image);
      if (why !== undefined)
        throw new ContextRefused(
          `line ${line} of ${dockerfile}: a trigger of ${image} takes ${other.image}: ${why}`,
        );
    }
    if (fetches !== undefined)
      throw new ContextRefused(
        `line ${line} of ${dockerfile}: the image ${image} has the trigger ONBUILD ${triggers[fetches.line - 1]}: ${fetches.why}`,
      );
  }
}

/** What an image's ONBUILD runs in the builds that are based on it. The engine would take the image anyway. */
async function triggersOf(docker: Dockerode, image: string): Promise<readonly string[]> {
  const inspect = () => unless([404], () => docker.getImage(image).inspect());
  let info = await inspect();
  if (info === undefined) {
    const trouble = await takeImage(docker, image);
    info = await inspect();
    if (info === undefined)
      throw new ContextRefused(`the image ${image} cannot be taken (${trouble ?? "it is gone"})`);
  }
  const onBuild: unknown = info?.Config.OnBuild;
  return Array.isArray(onBuild) ? onBuild.map(String) : [];
}

/** @returns the engine's message if it cannot */
async function takeImage(docker: Dockerode, image: string): Promise<string | undefined> {
  try {
    const taking = await docker.createImage({ fromImage: withTag(image) });
    return await new Promise((resolve) =>
      docker.modem.followProgress(taking, (error) => resolve(error === null ? undefined : reasonOf(error))),
    );
  } catch (error) {
    if (statusOf(error) === undefined) throw unavailable(error);
    return reasonOf(error);
  }
}

/** Without a tag the engine would take all of them. */
const withTag = (image: string): string => (/[:@][^/]*$/.test(image) ? image : `${image}:latest`);

/** Checks for the programs that every image needs: docs/sandbox.md. */
const PROBE =
  'import shutil; print(*[name for name in ("bash", "sort", "tee") if shutil.which(name) is None])';

/** Removes the image if no sandbox can run from it; on failure, later cleanup does. @returns what it lacks */
async function shortcomingOf(docker: Dockerode, image: string): Promise<string | undefined> {
  const lacks = await runOnce(docker, {
    Image: image,
    Entrypoint: ["python3", "-I", "-c", PROBE],
    User: "1000:1000",
    HostConfig: { NetworkMode: "none" },
  }).catch((error: unknown) => {
    // 400 and 404: there is no such program.
    if (statusOf(error) === undefined) throw unavailable(error);
    return "python3";
  });
  if (lacks.trim() === "") return undefined;
  // Forced: the container that ran the check may not be removed yet.
  await unless([404, 409], () => docker.getImage(image).remove({ force: true }));
  return `the image has no ${lacks.trim()}, which a sandbox needs: docs/sandbox.md lists what an image needs`;
}

const proxies = (): Record<string, string> =>
  Object.fromEntries(
    egressEnvironment()
      .filter((entry) => PROXIES.test(entry))
      .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );

interface Message {
  readonly stream?: string;
  readonly error?: string;
  /** The image's id, in the last messages. */
  readonly aux?: { readonly ID?: string };
}

/** The engine sends one JSON text per line. */
async function* messages(answer: NodeJS.ReadableStream): AsyncGenerator<Message> {
  let rest = "";
  for await (const piece of answer.setEncoding("utf8")) {
    const lines = (rest + String(piece)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as Message;
  }
  if (rest.trim() !== "") yield JSON.parse(rest) as Message;
}

const MAX_MARK = 2 ** 24;

interface ProcessLimits {
  /** For the build's option `shmsize`, in bytes. */
  readonly mark: number;
  /** Why a container could not be limited; it was removed. */
  failed(): string | undefined;
  end(): void;
}

const isRunning = (container: Dockerode.Container): Promise<boolean> =>
  container.inspect().then(
    ({ State: state }) => state.Running,
    (error: unknown) => statusOf(error) !== 404,
  );

/**
 * The limit on processes for a build's containers, which the engine's builder does not offer: each is given it as soon as it starts.
 * They are known by the size of their shared memory, the only mark that the builder passes on to them.
 * @throws SandboxUnavailable (retryable) if the engine does not answer
 */
async function limitProcesses(docker: Dockerode, spec: SandboxSpec): Promise<ProcessLimits> {
  // Whole kilobytes: some kernels round to pages.
  const mark = SHM_BYTES + 4096 * randomInt(1, MAX_MARK / 4096);
  let failure: string | undefined;
  const limit = async (id: string) => {
    const container = docker.getContainer(id);
    try {
      const { HostConfig: host } = await container.inspect();
      if (host.ShmSize !== mark || host.PidsLimit === spec.pids) return;
      await container.update({ PidsLimit: spec.pids });
    } catch (error) {
      // It has ended already, or is another program's and was removed. The engine says the former in several ways.
      if ([404, 409].includes(statusOf(error) ?? 0) || !(await isRunning(container))) return;
      failure = `the number of its processes cannot be limited (${reasonOf(error)})`;
      await unless([404, 409], () => container.remove({ force: true, v: true })).catch(() => undefined);
    }
  };
  const events = await unless([], () =>
    docker.getEvents({ filters: { type: ["container"], event: ["start"] } }),
  );
  let rest = "";
  events?.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { id } = line.trim() === "" ? {} : (JSON.parse(line) as { readonly id?: string });
      if (id !== undefined) void limit(id);
    }
  });
  let isOver = false;
  const unheard = () => {
    if (!isOver) failure ??= "the number of its processes cannot be limited: the engine's events ended";
  };
  if (events === undefined) unheard();
  events?.on("error", unheard).on("end", unheard);
  return {
    mark,
    failed: () => failure,
    end: () => {
      isOver = true;
      if (events !== undefined && "destroy" in events)
        (events as NodeJS.ReadableStream & { destroy(): void }).destroy();
    },
  };
}
