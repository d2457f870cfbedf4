/**
 * A worker and a client in the surroundings that operators have: one session to its end, or a start that is refused by the variable's
 * name. `npm test` runs a sample by seed; `npm run chaos -- --surroundings` (LONGHAUL_SURROUNDINGS=all) runs all.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request as forward } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { expect, inject, onTestFinished, test } from "vitest";
import { makeCertificates, noCertificates } from "../support/certificates.ts";
import { emptyFolder, longhaul } from "../support/commands/longhaul.ts";
import { listen } from "../support/listen.ts";
import { startPostgresServer } from "../support/postgres-server.ts";
import { clientArgs, spawned, workerArgs } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

type Variables = Readonly<Record<string, string>>;

/** What is set up for a case, and then set for worker and client. */
type SetUp = () => Promise<Variables> | Variables;

const modelPort = () => Number(new URL(inject("commandsEnvironment")["OPENAI_BASE_URL"] ?? "").port);
const modelPath = () => new URL(inject("commandsEnvironment")["OPENAI_BASE_URL"] ?? "").pathname;

const works: Readonly<Record<string, SetUp>> = {
  "a machine for production": () => ({
    NODE_ENV: "production",
    npm_config_omit: "dev",
    LANG: "C",
    TZ: "Pacific/Kiritimati",
  }),
  "proxies that nothing on this machine is to pass": () => ({
    HTTPS_PROXY: "127.0.0.1:9",
    HTTP_PROXY: "127.0.0.1:9",
    http_proxy: "http://127.0.0.1:9",
    https_proxy: "http://127.0.0.1:9",
    grpc_proxy: "http://127.0.0.1:9",
  }),
  "a model that only a proxy reaches, named without a scheme": async () => ({
    HTTP_PROXY: `127.0.0.1:${await modelProxy()}`,
    OPENAI_BASE_URL: `http://model.example${modelPath()}`,
  }),
  "a model behind a certificate authority of one's own": async () => {
    const made = makeCertificates(emptyFolder());
    const port = await tlsBefore(
      { port: modelPort() },
      { cert: readFileSync(made.cert), key: readFileSync(made.key) },
    );
    return { OPENAI_BASE_URL: `https://localhost:${port}${modelPath()}`, NODE_EXTRA_CA_CERTS: made.ca };
  },
  "Postgres with TLS and a certificate authority of one's own": async () => {
    const made = makeCertificates(emptyFolder());
    const server = await startPostgresServer({
      settings: ["ssl=on", `ssl_cert_file=${made.cert}`, `ssl_key_file=${made.key}`],
      reads: [made.folder, made.cert, made.key],
    });
    onTestFinished(() => server.close());
    const url = server.url.replace("127.0.0.1", "localhost");
    return { DATABASE_URL: `${url}?sslmode=verify-full&sslrootcert=${encodeURIComponent(made.ca)}` };
  },
  "an engine with TLS": async () => {
    const made = makeCertificates(emptyFolder());
    const [ca, cert, key] = [readFileSync(made.ca), readFileSync(made.cert), readFileSync(made.key)];
    const strict = { ca, cert, key, requestCert: true, rejectUnauthorized: true };
    const port = await tlsBefore({ path: "/var/run/docker.sock" }, strict);
    return { DOCKER_HOST: `tcp://localhost:${port}`, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: made.folder };
  },
  "an engine that only the docker command's context names": () => {
    const folder = emptyFolder();
    const id = createHash("sha256").update("far").digest("hex");
    const meta = join(folder, "contexts", "meta", id);
    mkdirSync(meta, { recursive: true });
    writeFileSync(join(folder, "config.json"), JSON.stringify({ currentContext: "far" }));
    const endpoints = { docker: { Host: "unix:///var/run/docker.sock" } };
    writeFileSync(join(meta, "meta.json"), JSON.stringify({ Name: "far", Endpoints: endpoints }));
    return { DOCKER_CONFIG: folder, DOCKER_HOST: "" };
  },
};

const NEEDS_OPENSSL = /certificate authority|with TLS/;

/** Each ends a worker's start. */
const refused: Readonly<
  Record<string, { readonly set: Variables; readonly code: number; readonly says: RegExp }>
> = {
  "a socks proxy": { set: { HTTPS_PROXY: "socks5://127.0.0.1:9" }, code: 4, says: /HTTPS_PROXY is socks5/ },
  "a proxy that is none": { set: { ALL_PROXY: "a b" }, code: 4, says: /ALL_PROXY is no address of a proxy/ },
  "sslmode=prefer": {
    set: { DATABASE_URL: "postgres://h/d?sslmode=prefer" },
    code: 2,
    says: /DATABASE_URL: sslmode=prefer/,
  },
  "several hosts of Postgres": {
    set: { DATABASE_URL: "postgres://a,b/d" },
    code: 2,
    says: /DATABASE_URL: it names several/,
  },
  "a context that is gone": {
    set: { DOCKER_CONTEXT: "gone", DOCKER_HOST: "" },
    code: 4,
    says: /DOCKER_CONTEXT is gone/,
  },
  "an engine's address that is none": {
    set: { DOCKER_HOST: "ftp://x" },
    code: 4,
    says: /DOCKER_HOST is "ftp:\/\/x"/,
  },
};

const seed = Number(process.env["LONGHAUL_SEED"] ?? Math.floor(Date.now() / 86_400_000));
const all = process.env["LONGHAUL_SURROUNDINGS"] === "all";
/** One a day without certificates, and one with. */
function sample(): string[] {
  const names = Object.keys(works);
  if (all) return names;
  const random = createRandom(seed);
  const [plain, secure] = [false, true].map((kind) =>
    names.filter((name) => NEEDS_OPENSSL.test(name) === kind),
  );
  return [random.pick(plain ?? []), random.pick(secure ?? [])];
}

test.for(sample())(
  `a session is done with %s (seed ${seed})`,
  { timeout: 300_000 },
  async (name, { skip }) => {
    if (NEEDS_OPENSSL.test(name) && noCertificates() !== undefined) skip(noCertificates());
    const queue = `surroundings-${randomUUID()}`;
    const own = { ...(await works[name]?.()), LONGHAUL_TASK_QUEUE: queue };
    const environment = { ...inject("commandsEnvironment"), ...own };
    const worker = await startWorkerProcess(environment);
    onTestFinished(async () => void (await worker.terminate()));
    const done = await longhaul(["run", "run: echo here\nsay: Hello."], { environment });
    expect(done, `${done.err}\n${worker.log()}`).toMatchObject({ code: 0, out: "Hello.\n" });
    expect(done.err).not.toMatch(/warning|deprecat/i);
  },
);

test.for(Object.keys(refused))(
  "a worker does not start with %s, and says which variable it is",
  async (name) => {
    const { set = {}, code = 0, says = /^$/ } = refused[name] ?? {};
    const environment = { PATH: process.env["PATH"], ...inject("commandsEnvironment"), ...set };
    const ended = await spawned(process.execPath, workerArgs(), { env: environment }).ended;
    expect(ended, ended.err).toMatchObject({ code, err: expect.stringMatching(says) });
    expect(ended.err).not.toMatch(/^ {4}at /m);
  },
);

test("doctor names what cannot be used instead of ending", async () => {
  const environment = {
    ...inject("commandsEnvironment"),
    DOCKER_CONTEXT: "gone",
    DOCKER_HOST: "",
    HTTPS_PROXY: "socks5://x",
  };
  const { out } = await spawned(process.execPath, clientArgs(["doctor"]), {
    env: { PATH: process.env["PATH"], ...environment },
  }).ended;
  expect(out).toMatch(/✗ Docker +cannot be reached: DOCKER_CONTEXT is gone/);
  expect(out).toMatch(/HTTPS_PROXY is socks5/);
});

/** Passes every request on to the model's server, whatever host it is for. */
function modelProxy(): Promise<number> {
  const proxy = createServer((asked, answer) => {
    const { pathname: path } = new URL(asked.url ?? "");
    const { method, headers } = asked;
    const passed = forward({ port: modelPort(), path, method, headers }, (said) => {
      answer.writeHead(said.statusCode ?? 502, said.headers);
      said.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
  });
  return listen(proxy);
}

/** TLS in front of a plain server. */
function tlsBefore(
  to: { readonly port: number } | { readonly path: string },
  options: TlsOptions,
): Promise<number> {
  const open = new Set<Socket>();
  const server = createTlsServer({ ...options, allowHalfOpen: true }, (secure) => {
    const plain = connect({ ...to, allowHalfOpen: true });
    for (const end of [secure, plain]) {
      open.add(end);
      end.on("error", () => [secure, plain].forEach((socket) => socket.destroy()));
      end.on("close", () => open.delete(end));
    }
    secure.pipe(plain).pipe(secure);
  });
  onTestFinished(() => open.forEach((socket) => socket.destroy()));
  return listen(server);
}
