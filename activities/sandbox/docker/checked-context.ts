/** A build's context as it is sent to the engine: repacked, so that what was checked is what is built. */
import { once } from "node:events";
import { posix } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { extract, pack, type Header } from "tar-stream";

/** Names as bytes; missing in the package's types. */
const AS_BYTES: object = { filenameEncoding: "latin1" };

/** Chosen: a Dockerfile is a page or two. */
const MAX_DOCKERFILE_BYTES = 1024 * 1024;

/** The context is not sent; the message says why. */
export class ContextRefused extends Error {
  override readonly name = "ContextRefused";
}

/**
 * @param check is given the Dockerfile, and throws if it may not be built; else it returns what is sent in its place
 * @throws ContextRefused while it is read: for names that lead elsewhere or come twice, and for a Dockerfile that is no file
 */
export function checkedContext(
  context: AsyncIterable<Uint8Array>,
  dockerfile: string,
  check: (dockerfile: Buffer) => Promise<Buffer>,
): Readable {
  const out = pack(AS_BYTES);
  // A pipe of Node's own, which the engine's client reads.
  const stream = new PassThrough();
  out.pipe(stream);
  repack(context, out, { dockerfile, check }).catch((error: unknown) => {
    out.destroy();
    stream.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  return stream;
}

interface DockerfileCheck {
  readonly dockerfile: string;
  readonly check: (dockerfile: Buffer) => Promise<Buffer>;
}

async function repack(
  context: AsyncIterable<Uint8Array>,
  out: ReturnType<typeof pack>,
  { dockerfile, check }: DockerfileCheck,
): Promise<void> {
  const names = new Names();
  const dockerfilePath = posix.normalize(dockerfile);
  let isFound = false;
  const source = Readable.from(context);
  const parts = extract(AS_BYTES);
  source.on("error", (error: Error) => parts.destroy(error));
  source.pipe(parts);
  for await (const entry of parts) {
    const path = names.add(entry.header);
    const header: Header = { ...entry.header, name: entry.header.type === "directory" ? `${path}/` : path };
    const bytes =
      path === Buffer.from(dockerfilePath).toString("latin1")
        ? await dockerfileOf(entry.header, entry as AsyncIterable<Uint8Array>, dockerfile)
        : undefined;
    if (bytes === undefined) {
      const to = out.entry(header);
      for await (const piece of entry) if (!to.write(piece)) await once(to, "drain");
      (to as NodeJS.WritableStream).end();
      continue;
    }
    const checked = await check(bytes);
    out.entry({ ...header, size: checked.byteLength }, checked);
    isFound = true;
  }
  if (!isFound) throw new ContextRefused(`the context has no ${dockerfile}`);
  out.finalize();
}

async function dockerfileOf(
  { type, size }: Header,
  bytes: AsyncIterable<Uint8Array>,
  dockerfile: string,
): Promise<Buffer> {
  if (type !== "file") throw new ContextRefused(`${dockerfile} is a ${type ?? "thing"} and no file`);
  if (size > MAX_DOCKERFILE_BYTES)
    throw new ContextRefused(`${dockerfile} has more than ${MAX_DOCKERFILE_BYTES} bytes`);
  return await buffer(Readable.from(bytes));
}

/** The names so far: each once, none outside, none below a link, through which it could replace another. */
class Names {
  readonly #seen = new Set<string>();
  readonly #links = new Set<string>();

  /** @returns the name in its one spelling. @throws ContextRefused */
  add({ name, type }: Header): string {
    const path = posix.normalize(name).replace(/\/$/, "");
    if (path.startsWith("/") || path === ".." || path.startsWith("../"))
      throw new ContextRefused(`the context has a file outside itself: ${name}`);
    if (type !== "file" && type !== "directory" && type !== "symlink")
      throw new ContextRefused(`the context has a ${type ?? "thing"}: ${name}`);
    if (this.#seen.has(path)) throw new ContextRefused(`the context has two files named ${path}`);
    for (let above = posix.dirname(path); above !== "."; above = posix.dirname(above))
      if (this.#links.has(above)) throw new ContextRefused(`the context has a file below a link: ${name}`);
    this.#seen.add(path);
    if (type === "symlink") this.#links.add(path);
    return path;
  }
}
