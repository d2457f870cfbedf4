/** The task's text: from the command line, from stdin, or from both. */
import { readText } from "../../activities/text/encoding.ts";
import { fstatSync } from "node:fs";
import { Readable } from "node:stream";
import { cleanText } from "../../activities/text/clean.ts";
import { usageError } from "../console/errors.ts";

/** Most characters of a task or a message, input from stdin included. Source: requirement 4.1. */
export const MAX_TEXT_CHARS = 1_048_576;

/**
 * How long stdin may stay silent before it is ignored. A shell's pipe is meant as input, but its first bytes may take a
 * while; a socket is mostly one that a parent process forgot to close.
 */
const PIPE_SILENCE_MS = 5_000;
const SOCKET_SILENCE_MS = 300;

export interface Stdin {
  readonly kind: "terminal" | "file" | "pipe" | "socket" | "none";
  readonly stream: NodeJS.ReadableStream;
}

/** For programs, whose own standard input is not ours to read. */
export const noStdin = (): Stdin => ({ kind: "none", stream: Readable.from([]) });

export function processStdin(): Stdin {
  return { kind: kindOf(), stream: process.stdin };
}

function kindOf(): Stdin["kind"] {
  try {
    const stat = fstatSync(0);
    if (stat.isFile()) return "file";
    if (stat.isFIFO()) return "pipe";
    if (stat.isSocket()) return "socket";
    return process.stdin.isTTY ? "terminal" : "none";
  } catch {
    return "none";
  }
}

/**
 * The task's text. `-` reads it from stdin; otherwise what is piped in is added below it, marked as input.
 * @throws ClientError (usage) when there is no text, or too much
 */
export async function readTask(
  taskWords: readonly string[],
  stdin: Stdin,
  note: (text: string) => void,
): Promise<string> {
  const typed = taskWords.join(" ").trim();
  if (typed === "-") return checked((await readAll(stdin.stream)).trim());
  if (typed === "")
    throw usageError("There is no task.", 'Say what to do: longhaul run "…", or `-` to read it from stdin.');
  const piped = (await readPiped(stdin, note)).trim();
  return checked(piped === "" ? typed : `${typed}\n\n<input>\n${piped}\n</input>`);
}

/** A message's text from the arguments; `-` reads stdin. @throws ClientError (usage) */
export async function readMessage(messageWords: readonly string[], stdin: Stdin): Promise<string> {
  const typed = messageWords.join(" ").trim();
  return checked(typed === "-" ? (await readAll(stdin.stream)).trim() : typed);
}

/** Text that Postgres and every model accept: well-formed, without NUL, not empty, bounded. */
function checked(text: string): string {
  const clean = cleanText(text);
  if (clean.trim() === "") throw usageError("The text is empty: nothing was done.");
  if (clean.length > MAX_TEXT_CHARS) {
    throw usageError(
      `The text has ${clean.length} characters; at most ${MAX_TEXT_CHARS} go into one message.`,
      "Put the text into a file of the workspace (--workspace DIR) and name the file in the task.",
    );
  }
  return clean;
}

async function readPiped(stdin: Stdin, note: (text: string) => void): Promise<string> {
  switch (stdin.kind) {
    case "file":
      return readAll(stdin.stream);
    case "pipe":
    case "socket": {
      const silenceMs = stdin.kind === "pipe" ? PIPE_SILENCE_MS : SOCKET_SILENCE_MS;
      const text = await readUnlessSilent(stdin.stream, silenceMs);
      if (text !== undefined) return text;
      if (stdin.kind === "pipe")
        note(`No input arrived on stdin for ${silenceMs / 1_000} s: continuing without it.\n`);
      return "";
    }
    case "terminal":
    case "none":
      return "";
  }
}

/** A shell of Windows writes UTF-16. */
function textOfBytes(bytes: Buffer): string {
  const contents = readText(bytes);
  return contents.kind === "text" ? contents.text : bytes.toString("utf8");
}

/** UTF-8 has at most four bytes a character. */
const MAX_TEXT_BYTES = 4 * MAX_TEXT_CHARS;
const tooMuch = () =>
  usageError(
    `More than ${MAX_TEXT_CHARS} characters arrive on stdin, and no more go into one message.`,
    "Put the text into a file of the workspace (--workspace DIR) and name the file in the task.",
  );

/** @throws ClientError (usage) for more than a message may have: a stream need not end */
async function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    bytes += pieces[pieces.push(Buffer.from(piece)) - 1]?.length ?? 0;
    if (bytes > MAX_TEXT_BYTES) throw tooMuch();
  }
  return textOfBytes(Buffer.concat(pieces));
}

/** A whole stream, or undefined if no byte came in time. */
function readUnlessSilent(stream: NodeJS.ReadableStream, silenceMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => {
      stream.pause();
      // An open pipe would keep the process alive.
      if ("unref" in stream && typeof stream.unref === "function") stream.unref();
      resolve(undefined);
    }, silenceMs);
    stream.on("data", (piece: Buffer | string) => {
      clearTimeout(timer);
      bytes += pieces[pieces.push(Buffer.from(piece)) - 1]?.length ?? 0;
      if (bytes <= MAX_TEXT_BYTES) return;
      if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy();
      reject(tooMuch());
    });
    stream.on("error", reject);
    stream.on("end", () => {
      clearTimeout(timer);
      resolve(textOfBytes(Buffer.concat(pieces)));
    });
  });
}
