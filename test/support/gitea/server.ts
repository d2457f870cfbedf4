/** A real Gitea of a test's own, with an administrator and three people: one bot, one developer, one stranger. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { childEnvironment, freePort, run } from "../../../client/setup/processes.ts";
import { ownProcess } from "../own-process.ts";
import type { GiteaPrograms } from "./programs.ts";

/** With an empty database it starts in 4 s on two idle cores, and in 30 s on busy ones. */
const START_MS = 180_000;

const PEOPLE = ["bot", "dev", "stranger"] as const;
export type Person = "owner" | (typeof PEOPLE)[number];

interface GiteaAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed where it is JSON. */
  readonly body: unknown;
}

export interface GiteaServer {
  /** Without a slash at the end. */
  readonly url: string;
  readonly tokens: Readonly<Record<Person, string>>;
  /** Asks its API as a person. */
  ask(person: Person, method: string, path: string, body?: object): Promise<GiteaAnswer>;
  /** The same, and the answer's body. @throws Error if it is refused */
  made<T>(person: Person, method: string, path: string, body?: object): Promise<T>;
  /**
   * A repository of the owner with a first commit on `main`, to which `bot` and `dev` may write.
   * @returns its path in the API: `/repos/owner/<name>`
   */
  makeRepository(name: string, options?: { readonly private?: boolean }): Promise<string>;
  /** A person commits one file, on a new branch if `from` is given. @returns the commit */
  commit(person: Person, repository: string, change: Change): Promise<string>;
  /** Takes all ssh keys as shown to be their owners', for which a person signs a text on a page: no path of the API does that. */
  verifySshKeys(): void;
  /** The token with which a runner of Actions registers. */
  runnerToken(): Promise<string>;
  close(): Promise<void>;
}

interface Change {
  readonly branch: string;
  readonly from?: string;
  readonly path: string;
  readonly text: string;
}

type Found = Extract<GiteaPrograms, { readonly ok: true }>;

export async function startGitea({ program, folder: parts }: Found): Promise<GiteaServer> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-gitea-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = join(home, "app.ini");
  writeFileSync(config, settings({ home, parts, port }));
  const env = { ...childEnvironment("service"), HOME: home, GITEA_WORK_DIR: home };
  const args = ["web", "--config", config];
  const server = ownProcess(
    "Gitea",
    { command: program, args, log: join(home, "gitea.log"), env, cwd: home },
    async () => {
      const answer = await fetch(`${url}/api/healthz`);
      if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    },
    START_MS,
  );
  const close = async () => {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  };
  const command = async (...words: string[]) => {
    const { stdout } = await run(program, [...words, "--config", config], { env, timeout: START_MS });
    // As root, it warns first.
    return stdout.trim().split("\n").at(-1) ?? "";
  };
  const tokens: Record<Person, string> = { owner: "", bot: "", dev: "", stranger: "" };

  async function send(credential: string, method: string, path: string, body?: object): Promise<GiteaAnswer> {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      redirect: "manual",
      headers: { authorization: credential, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
    const { status, headers } = answer;
    return { status, headers, body: isJson && text !== "" ? (JSON.parse(text) as unknown) : text };
  }

  const gitea: GiteaServer = {
    url,
    tokens,
    ask: (person, method, path, body) => send(`token ${tokens[person]}`, method, path, body),
    async made<T>(person: Person, method: string, path: string, body?: object) {
      const answer = await gitea.ask(person, method, path, body);
      if (answer.status >= 300)
        throw new Error(`${method} ${path} as ${person}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body as T;
    },
    async makeRepository(name, options = {}) {
      const fields = { name, auto_init: true, default_branch: "main", private: options.private === true };
      await gitea.made("owner", "POST", "/user/repos", fields);
      const path = `/repos/owner/${name}`;
      for (const person of ["bot", "dev"])
        await gitea.made("owner", "PUT", `${path}/collaborators/${person}`, { permission: "write" });
      return path;
    },
    async commit(person, repository, { branch, from, path, text }) {
      const place = `${repository}/contents/${path}`;
      const known = await gitea.ask(person, "GET", `${place}?ref=${encodeURIComponent(from ?? branch)}`);
      const { sha } = known.status === 200 ? (known.body as { readonly sha: string }) : { sha: undefined };
      const branches = from === undefined ? { branch } : { branch: from, new_branch: branch };
      const content = Buffer.from(text).toString("base64");
      const fields = { ...branches, content, message: `Change ${path}`, sha };
      const method = sha === undefined ? "POST" : "PUT";
      const { commit } = await gitea.made<{ readonly commit: { readonly sha: string } }>(
        person,
        method,
        place,
        fields,
      );
      return commit.sha;
    },
    verifySshKeys() {
      const database = new DatabaseSync(join(home, "gitea.db"));
      try {
        database.exec("PRAGMA busy_timeout = 10000; UPDATE public_key SET verified = 1");
      } finally {
        database.close();
      }
    },
    runnerToken: () => command("actions", "generate-runner-token"),
    close,
  };
  const makePeople = async () => {
    const password = "Correct-Horse-7";
    const email = (name: string) => `${name}@example.org`;
    const asOwner = ["--username", "owner"];
    const account = ["--password", password, "--email", email("owner"), "--must-change-password=false"];
    await command("admin", "user", "create", "--admin", ...asOwner, ...account);
    const key = ["--token-name", "test", "--scopes", "all", "--raw"];
    tokens.owner = await command("admin", "user", "generate-access-token", ...asOwner, ...key);
    for (const name of PEOPLE) {
      const person = { username: name, password, email: email(name), must_change_password: false };
      await gitea.made("owner", "POST", "/admin/users", person);
      const basic = `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
      const made = await send(basic, "POST", `/users/${name}/tokens`, { name: "test", scopes: ["all"] });
      tokens[name] = (made.body as { readonly sha1: string }).sha1;
    }
  };
  try {
    await server.start();
    await makePeople();
    return gitea;
  } catch (error) {
    await close();
    throw error;
  }
}

/** All that differs from its defaults. */
function settings(of: { readonly home: string; readonly parts: string; readonly port: number }): string {
  const user = userInfo();
  const root = user.uid === 0 ? "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true" : "";
  return `RUN_USER = ${user.username}
${root}
WORK_PATH = ${of.home}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${of.port}
ROOT_URL = http://127.0.0.1:${of.port}/
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = ${of.parts}
[database]
DB_TYPE = sqlite3
PATH = ${join(of.home, "gitea.db")}
[security]
INSTALL_LOCK = true
SECRET_KEY = test
[webhook]
ALLOWED_HOST_LIST = loopback
[actions]
ENABLED = true
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[mailer]
ENABLED = false
[log]
LEVEL = Warn
`;
}
