/**
 * A Git LFS store with the transfer `basic`, as strict as the real ones: content types, credentials, hashes, and an
 * object that counts only once it is verified. Source: git-lfs, docs/api/batch.md and docs/api/basic-transfers.md.
 */
import { createHash, randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { basicPassword } from "./listen.ts";

const TYPE = "application/vnd.git-lfs+json";

export interface LfsServer {
  /** Contents by their hash, verified. */
  readonly objects: Map<string, Buffer>;
  /** Requests in their order: `batch download`, `GET <oid>`, and `push` to the repository. */
  readonly seen: string[];
  /** Passwords that came with requests, of all of them. */
  readonly passwords: Set<string>;
  /** Sends something else for each object. */
  lies: boolean;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
}

/** The text of a file's pointer, as git-lfs writes it. */
export function pointerOf(content: string | Buffer): { readonly oid: string; readonly text: string } {
  const bytes = Buffer.from(content);
  const oid = createHash("sha256").update(bytes).digest("hex");
  return {
    oid,
    text: `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${bytes.length}\n`,
  };
}

interface Asked {
  readonly operation: string;
  readonly transfers?: readonly string[];
  readonly hash_algo?: string;
  readonly objects: readonly { readonly oid: string; readonly size: number }[];
}

/** Of the repository `acme/app.git`, for the password of any user. */
export function createLfsServer(password: string): LfsServer {
  /** A token from a batch's answer, valid once. */
  const tickets = new Map<string, string>();
  const unverified = new Map<string, Buffer>();
  const server: LfsServer = {
    objects: new Map(),
    seen: [],
    passwords: new Set(),
    lies: false,
    async handle(request, response) {
      const url = new URL(request.url ?? "/", `http://${request.headers.host ?? ""}`);
      const isBatch = url.pathname === "/acme/app.git/info/lfs/objects/batch";
      if (!isBatch && !url.pathname.startsWith("/lfs-store/")) {
        if (url.pathname.endsWith("/git-receive-pack")) server.seen.push("push");
        return false;
      }
      const body = await buffer(request);
      const authorization = request.headers.authorization ?? "";
      if (authorization.startsWith("Basic ")) server.passwords.add(basicPassword(authorization));
      const { status, json, bytes } = isBatch ? batch(request, url, body) : object(request, url, body);
      const type = bytes === undefined ? TYPE : "application/octet-stream";
      response.writeHead(status, { "content-type": type }).end(bytes ?? JSON.stringify(json ?? {}));
      return true;
    },
  };

  interface Said {
    readonly status: number;
    readonly json?: unknown;
    readonly bytes?: Buffer;
  }

  function batch(request: IncomingMessage, { origin }: URL, body: Buffer): Said {
    if (basicPassword(request.headers.authorization) !== password)
      return { status: 401, json: { message: "Credentials needed" } };
    if (request.headers.accept !== TYPE || request.headers["content-type"] !== TYPE)
      return { status: 406, json: { message: "Not acceptable" } };
    const batchRequest = JSON.parse(body.toString()) as Asked;
    if (
      batchRequest.hash_algo !== "sha256" ||
      batchRequest.transfers?.includes("basic") !== true ||
      batchRequest.objects.length > 100
    )
      return { status: 422, json: { message: "Unprocessable" } };
    server.seen.push(`batch ${batchRequest.operation}`);
    const action = (verb: string, oid: string) => {
      const ticket = randomUUID();
      tickets.set(ticket, `${verb} ${oid}`);
      return { href: `${origin}/lfs-store/${oid}?v=${verb}`, header: { Authorization: `Ticket ${ticket}` } };
    };
    const objects = batchRequest.objects.map(({ oid, size }) => {
      const there = server.objects.get(oid);
      if (batchRequest.operation === "upload")
        return {
          oid,
          size,
          actions: there ? undefined : { upload: action("PUT", oid), verify: action("POST", oid) },
        };
      if (there === undefined) return { oid, size, error: { code: 404, message: "Object does not exist" } };
      return { oid, size, actions: { download: action("GET", oid) } };
    });
    return { status: 200, json: { transfer: "basic", objects } };
  }

  function object(request: IncomingMessage, url: URL, body: Buffer): Said {
    const oid = url.pathname.slice("/lfs-store/".length);
    const ticket = (request.headers.authorization ?? "").replace(/^Ticket /, "");
    if (tickets.get(ticket) !== `${request.method} ${oid}`)
      return { status: 403, json: { message: "No ticket" } };
    tickets.delete(ticket);
    server.seen.push(`${request.method} ${oid.slice(0, 8)}`);
    if (request.method === "GET")
      return {
        status: 200,
        bytes: server.lies ? Buffer.from("lies") : (server.objects.get(oid) ?? Buffer.alloc(0)),
      };
    if (request.method === "PUT") {
      const isWhole = request.headers["content-length"] === String(body.length);
      if (!isWhole || createHash("sha256").update(body).digest("hex") !== oid)
        return { status: 422, json: { message: "Hash or length differ" } };
      unverified.set(oid, body);
      return { status: 200 };
    }
    const verified = unverified.get(oid);
    const claimed = JSON.parse(body.toString()) as { oid: string; size: number };
    if (verified === undefined || claimed.oid !== oid || claimed.size !== verified.length)
      return { status: 404, json: { message: "Not uploaded" } };
    server.objects.set(oid, verified);
    return { status: 200 };
  }

  return server;
}
