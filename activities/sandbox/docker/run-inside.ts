/** Runs a short program of ours in a running container, as its own user. */
import type Dockerode from "dockerode";
import { shorten } from "../../contract/cut-text.ts";
import { reasonOf } from "../../contract/reason-of.ts";
import { statusOf, unavailable } from "./docker-errors.ts";
import { frameReader } from "./supervisor-stream.ts";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 100_000;
const MAX_SAID_CHARS = 300;

export interface Ran {
  /** The JSON object that it printed; undefined if it printed none, or could not be run. */
  readonly answer: Readonly<Record<string, unknown>> | undefined;
  /** The last line of what it printed. */
  readonly said: string;
}

/** @throws SandboxUnavailable (retryable) if the engine does not answer */
export async function runInside(
  docker: Dockerode,
  containerId: string,
  program: { readonly argv: readonly string[]; readonly env?: readonly string[] },
): Promise<Ran> {
  try {
    const exec = await docker.getContainer(containerId).exec({
      Cmd: [...program.argv],
      Env: [...(program.env ?? [])],
      WorkingDir: "/",
      AttachStdout: true,
      AttachStderr: true,
    });
    return answerOf(await readAll(await exec.start({})));
  } catch (error) {
    // Engines refuse a program that is not there in one way or the other.
    const status = statusOf(error);
    if (status === 400 || status === 500 || status === 409)
      return { answer: undefined, said: shorten(reasonOf(error), MAX_SAID_CHARS) };
    throw unavailable(error);
  }
}

async function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const take = frameReader((_channel, piece) => {
    bytes += piece.length;
    if (bytes <= MAX_BYTES) pieces.push(piece);
  });
  const late = setTimeout(
    () =>
      (stream as NodeJS.ReadableStream & { destroy(error: Error): void }).destroy(
        new Error(`a program in the container did not end within ${TIMEOUT_MS / 1_000} s`),
      ),
    TIMEOUT_MS,
  );
  try {
    for await (const chunk of stream) take(chunk as Buffer);
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function answerOf(text: string): Ran {
  const last = text.trim().split("\n").at(-1) ?? "";
  try {
    const answer: unknown = JSON.parse(last);
    if (typeof answer === "object" && answer !== null)
      return { answer: answer as Record<string, unknown>, said: last };
  } catch {
    // It is what the engine or the program says of itself.
  }
  return { answer: undefined, said: shorten(last, MAX_SAID_CHARS) };
}
