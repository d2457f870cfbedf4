/** Remote repositories for tests: bare ones on disk, and Git's own server over HTTP with basic auth. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gitConfigSchema, type SessionGit } from "../../activities/config/git-settings.ts";
import { type AtEnd, emptyFolder } from "./empty-folder.ts";
import { basicPassword, listen } from "./listen.ts";

const IDENTITY = {
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.org",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.org",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

/** Git as a person runs it, in a folder. */
export function gitIn(folder: string, ...args: string[]): string {
  const env = { PATH: process.env["PATH"], HOME: tmpdir(), ...IDENTITY };
  return execFileSync("git", args, {
    cwd: folder,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}

/** A session's settings with that repository; its work is pushed at the end, unless `git` says otherwise. */
export const onRepository = (url: string, git: Partial<SessionGit> = {}) => ({
  repository: { ...gitConfigSchema.parse({ push: "end" }), url, ...git },
});

export interface Remote {
  /** The folder with the bare repository, and its address on disk. */
  readonly folder: string;
  readonly url: string;
  /** A reference's commit; undefined if it has none. */
  at(ref: string): string | undefined;
  /**
   * Another person commits on a branch. @returns the commit
   * @param links commits of submodules by their paths
   */
  commit(
    branch: string,
    files: Readonly<Record<string, string>>,
    links?: Readonly<Record<string, string>>,
  ): string;
}

/**
 * A repository with one commit on `main`: `acme/app.git` in its own folder.
 * @param options another name, an existing repository in whose folder it is made, and when it is removed
 */
export function makeRemote(
  files: Readonly<Record<string, string>> = { "README.md": "# Here\n" },
  options: { readonly name?: string; readonly beside?: Remote; readonly end?: AtEnd } = {},
): Remote {
  const { beside, name = "acme/app.git" } = options;
  const root = beside === undefined ? emptyFolder(options.end) : dirname(dirname(beside.folder));
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  gitIn(folder, "init", "-q", "--bare", "-b", "main");
  const remote: Remote = {
    folder,
    url: `file://${folder}`,
    at: (ref) => {
      try {
        return gitIn(folder, "rev-parse", "--verify", "-q", ref);
      } catch {
        return undefined;
      }
    },
    commit: (branch, changed, links = {}) => {
      const clone = mkdtempSync(join(root, "work-"));
      gitIn(clone, "clone", "-q", folder, ".");
      gitIn(
        clone,
        "checkout",
        "-q",
        "-B",
        branch,
        ...(remote.at(branch) === undefined ? [] : [`origin/${branch}`]),
      );
      for (const [path, text] of Object.entries(changed)) {
        mkdirSync(dirname(join(clone, path)), { recursive: true });
        writeFileSync(join(clone, path), text);
      }
      gitIn(clone, "add", "-A");
      for (const [path, commit] of Object.entries(links))
        gitIn(clone, "update-index", "--add", "--cacheinfo", `160000,${commit},${path}`);
      gitIn(clone, "commit", "-q", "-m", `Change ${Object.keys(changed).join(", ")}`);
      gitIn(clone, "push", "-q", "origin", branch);
      return gitIn(clone, "rev-parse", "HEAD");
    },
  };
  remote.commit("main", files);
  return remote;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

interface Held {
  /** Resolves when a request is at the point. */
  readonly reached: Promise<void>;
  /** Drops everything that is held: its client is gone. */
  readonly drop: () => void;
}

export interface GitServer {
  /** Holds the next request to a service: before Git runs, or between its end and the answer. */
  hold(service: string, when: "before" | "after"): Held;
  readonly origin: string;
  /** How many requests came with the right password, and without. */
  readonly seen: { allowed: number; refused: number };
  close(): Promise<void>;
}

/**
 * `git http-backend` over the remote's folder: `<origin>/acme/app.git`. Any user name; the password must equal or satisfy `password`.
 * @param other handles requests first, such as a forge's API on the same server
 */
export async function serveGit(
  remote: Remote,
  password: string | ((secret: string) => boolean),
  other?: Handler,
  end?: AtEnd,
): Promise<GitServer> {
  const isRight = typeof password === "string" ? (secret: string) => secret === password : password;
  gitIn(remote.folder, "config", "http.receivepack", "true");
  const root = dirname(dirname(remote.folder));
  const seen = { allowed: 0, refused: 0 };
  const holds: Hold[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      if (other !== undefined && (await other(request, response))) return;
      if (!isRight(basicPassword(request.headers.authorization))) {
        seen.refused += 1;
        response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
        return;
      }
      seen.allowed += 1;
      const [hold] = holds;
      // The first request to a service only lists references.
      if (
        hold === undefined ||
        request.method !== "POST" ||
        request.url?.endsWith(`/${hold.service}`) !== true
      )
        return backend(root, request, response);
      holds.shift();
      if (hold.when === "before") {
        hold.reach();
        await hold.dropped;
        response.destroy();
        return;
      }
      backend(root, request, response, () => {
        hold.reach();
        void hold.dropped.then(() => response.destroy());
      });
    })();
  });
  const port = await listen(server, end === undefined ? {} : { end });
  return {
    origin: `http://127.0.0.1:${port}`,
    seen,
    hold: (service, when) => {
      const [reached, dropped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      holds.push({ service, when, reach: reached.resolve, dropped: dropped.promise });
      return { reached: reached.promise, drop: dropped.resolve };
    },
    close: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}

interface Hold {
  readonly service: string;
  readonly when: "before" | "after";
  readonly reach: () => void;
  readonly dropped: Promise<void>;
}

/** @param instead is called in place of the answer */
function backend(
  root: string,
  request: IncomingMessage,
  response: ServerResponse,
  instead?: () => void,
): void {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      REMOTE_USER: "tester",
      CONTENT_LENGTH: request.headers["content-length"],
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"],
      GIT_PROTOCOL: request.headers["git-protocol"]?.toString(),
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(child.stdin);
  child.stdin.on("error", () => undefined);
  let head = Buffer.alloc(0);
  let hasBegun = false;
  if (instead !== undefined) {
    child.stdout.resume().on("end", instead);
    return;
  }
  child.stdout.on("data", (piece: Buffer) => {
    if (hasBegun) return void response.write(piece);
    head = Buffer.concat([head, piece]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    hasBegun = true;
    const lines = head.subarray(0, end).toString().split("\r\n");
    const headers = lines.map((line) => line.split(": ") as [string, string]);
    const status = headers.find(([name]) => name.toLowerCase() === "status")?.[1];
    response.writeHead(
      Number.parseInt(status ?? "200", 10),
      Object.fromEntries(headers.filter(([name]) => name.toLowerCase() !== "status")),
    );
    response.write(head.subarray(end + 4));
  });
  child.stdout.on("end", () => response.end());
}
