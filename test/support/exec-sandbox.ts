/** The part of the sandbox port that saves and restores need, over `docker exec`: for images our supervisor cannot run in. */
import { PassThrough } from "node:stream";
import type Dockerode from "dockerode";
import type { CommandState, Sandbox } from "../../activities/sandbox/sandbox.ts";

export type ExecSandbox = Pick<Sandbox, "run" | "read" | "discard">;

export function createExecSandbox(docker: Dockerode, container: string): ExecSandbox {
  const outputs = new Map<string, { readonly out: Buffer; readonly err: Buffer }>();
  return {
    async run({ id, argv, stdin }) {
      const startedAtMs = Date.now();
      const exec = await docker.getContainer(container).exec({
        Cmd: [...argv],
        User: "1000:1000",
        WorkingDir: "/workspace",
        AttachStdin: stdin !== undefined,
        AttachStdout: true,
        AttachStderr: true,
      });
      const stream = await exec.start({ hijack: true, stdin: stdin !== undefined });
      const [out, err] = [new PassThrough(), new PassThrough()];
      docker.modem.demuxStream(stream, out, err);
      stream.on("end", () => (out.end(), err.end()));
      if (stdin !== undefined) stream.end(Buffer.from(stdin));
      const output = { out: await all(out), err: await all(err) };
      outputs.set(id, output);
      const { ExitCode } = await exec.inspect();
      const [outBytes, errBytes] = [output.out.length, output.err.length];
      const end = { kind: "exited", exitCode: ExitCode ?? -1, durationMs: Date.now() - startedAtMs } as const;
      const sizes = { outBytes, errBytes, outKept: outBytes, errKept: errBytes };
      return { id, startedAtMs, ...sizes, ...end } satisfies CommandState;
    },
    read: async (id, stream, offset, maxBytes) =>
      outputs.get(id)?.[stream].subarray(offset, offset + maxBytes) ?? new Uint8Array(0),
    discard: async (id) => void outputs.delete(id),
  };
}

async function all(stream: PassThrough): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
