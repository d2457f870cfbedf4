/** Runs a container of the operator's image to its end and returns what it printed. */
import type Dockerode from "dockerode";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1_000_000;
/** A header before each piece of output gives its stream and its length. */
const HEAD_BYTES = 8;
const STDOUT = 1;

/**
 * With no capabilities but those in `options`, no writable file system, and bounded time and memory.
 * @returns what it wrote to standard output, or to standard error if that was nothing
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
    const said = readAll(output);
    // It may fail before it is awaited.
    said.catch(() => undefined);
    await container.start();
    return await said;
  } catch (error) {
    // A container that never started is not removed automatically.
    await container.remove({ force: true }).catch(() => undefined);
    throw error;
  }
}

async function readAll(output: NodeJS.ReadableStream): Promise<string> {
  const timer = setTimeout(
    () => (output as NodeJS.ReadableStream & { destroy(error: Error): void }).destroy(new Error(LATE)),
    TIMEOUT_MS,
  );
  try {
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of output) {
      pieces.push(piece as Buffer);
      bytes += (piece as Buffer).length;
      if (bytes > MAX_BYTES) throw new Error(`a helper container printed more than ${MAX_BYTES} bytes`);
    }
    return textOf(Buffer.concat(pieces));
  } finally {
    clearTimeout(timer);
  }
}

const LATE = `a helper container did not end within ${TIMEOUT_MS / 1_000} s`;

function textOf(bytes: Buffer): string {
  const streams: Record<number, Buffer[]> = {};
  for (let at = 0; at + HEAD_BYTES <= bytes.length;) {
    const length = bytes.readUInt32BE(at + 4);
    (streams[bytes.readUInt8(at)] ??= []).push(bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length));
    at += HEAD_BYTES + length;
  }
  const { [STDOUT]: out = [], ...others } = streams;
  return Buffer.concat(out.length > 0 ? out : Object.values(others).flat()).toString("utf8");
}
