/** Runs our own programs: in a separate container, or inside a running one. */
import type { Duplex } from "node:stream";
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import { shorten } from "../../text/cut.ts";
import { pythonArguments } from "../agent/sources.ts";
import { statusOf, unavailable, unless } from "./docker-errors.ts";
import { frameReader } from "./supervisor-stream.ts";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1_000_000;
const MAX_OUTPUT_CHARS = 300;
const STDOUT = 1;

/**
 * Runs a container of the operator's image, with only the capabilities in `options`, no writable file system, and bounded time
 * and memory.
 * @returns its standard output, or its standard error if the output is empty
 * @throws Error if the engine refuses, or it takes longer than 30 s
 */
export async function runOnce(docker: Dockerode, options: Dockerode.ContainerCreateOptions): Promise<string> {
  const container = await docker.createContainer({
    WorkingDir: "/",
    Cmd: [],
    Healthcheck: { Test: ["NONE"] },
    AttachStdout: true,
    AttachStderr: true,
    ...options,
    HostConfig: {
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges:true"],
      ReadonlyRootfs: true,
      PidsLimit: 16,
      Memory: 128 * 2 ** 20,
      AutoRemove: true,
      LogConfig: { Type: "none", Config: {} },
      ...options.HostConfig,
    },
  });
  try {
    const output = await container.attach({ stream: true, stdout: true, stderr: true });
    const text = programOutput(output);
    // It may fail before it is awaited.
    text.catch(() => undefined);
    await container.start();
    return await text;
  } catch (error) {
    // A container that never started is not removed automatically.
    await container.remove({ force: true, v: true }).catch(() => undefined);
    throw error;
  }
}

const DISK_SIZE = `import os
disk = os.statvfs("/disk")
print(disk.f_blocks * disk.f_frsize)`;

/** The size of the disk on which the engine has its volumes, in bytes. @throws SandboxUnavailable (retryable) */
export async function engineDisk(docker: Dockerode, image: string): Promise<number> {
  const printed = await unless([], () =>
    runOnce(docker, {
      Image: image,
      Entrypoint: ["python3", "-I", "-S", "-c", DISK_SIZE],
      HostConfig: {
        NetworkMode: "none",
        // Nameless: it goes with the container.
        Mounts: [{ Type: "volume", Source: "", Target: "/disk" }],
      },
    }),
  );
  const bytes = Number(printed);
  if (Number.isFinite(bytes) && bytes > 0) return bytes;
  throw unavailable(
    new Error(`the size of its disk could not be read: ${shorten(printed ?? "", MAX_OUTPUT_CHARS)}`),
  );
}

interface Ran {
  /** The JSON object that the program printed; undefined if it printed none, or could not be run. */
  readonly answer: Readonly<Record<string, unknown>> | undefined;
  /** The last line that it printed. */
  readonly output: string;
}

/** Runs a program in a running container, as that container's user. @throws SandboxUnavailable (retryable) without an answer */
export async function runInside(
  docker: Dockerode,
  containerId: string,
  program: { readonly argv: string[]; readonly env?: string[] },
): Promise<Ran> {
  try {
    const exec = await docker.getContainer(containerId).exec({
      Cmd: program.argv,
      Env: program.env ?? [],
      WorkingDir: "/",
      AttachStdout: true,
      AttachStderr: true,
    });
    return answerOf(await programOutput(await exec.start({})));
  } catch (error) {
    // Engines differ in the status with which they refuse a program that does not exist.
    const status = statusOf(error);
    if (status === 400 || status === 500 || status === 409)
      return { answer: undefined, output: shorten(reasonOf(error), MAX_OUTPUT_CHARS) };
    throw unavailable(error);
  }
}

/** Starts one of our Python programs in a running container. @returns the engine's stream of its input and output */
export async function startProgram(
  container: Dockerode.Container,
  [variable, source]: readonly [variable: string, source: string],
  environment: readonly string[],
  user?: string,
): Promise<Duplex> {
  const exec = await container.exec({
    Cmd: pythonArguments(variable),
    Env: [`${variable}=${source}`, ...environment],
    User: user,
    WorkingDir: "/",
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
  });
  return exec.start({ hijack: true, stdin: true });
}

function answerOf(text: string): Ran {
  const lastLine = text.trim().split("\n").at(-1) ?? "";
  try {
    const answer: unknown = JSON.parse(lastLine);
    if (typeof answer === "object" && answer !== null)
      return { answer: answer as Record<string, unknown>, output: lastLine };
  } catch {
    // Not JSON: an error message of the engine or of the program.
  }
  return { answer: undefined, output: shorten(lastLine, MAX_OUTPUT_CHARS) };
}

/** Reads the stream to its end. @returns the program's standard output, or its standard error if the output is empty */
export async function programOutput(stream: NodeJS.ReadableStream): Promise<string> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  let bytesLeft = MAX_BYTES;
  const take = frameReader((channel, piece) => {
    bytesLeft -= piece.length;
    if (bytesLeft < 0) throw new Error(`a helper program printed more than ${MAX_BYTES} bytes`);
    (channel === STDOUT ? out : err).push(piece);
  });
  const late = new Error(`a helper program did not end within ${TIMEOUT_MS / 1_000} s`);
  const timer = setTimeout(
    () => (stream as NodeJS.ReadableStream & { destroy(error: Error): void }).destroy(late),
    TIMEOUT_MS,
  );
  try {
    for await (const chunk of stream) take(chunk as Buffer);
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(out.length > 0 ? out : err).toString("utf8");
}
