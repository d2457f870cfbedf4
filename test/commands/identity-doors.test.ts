/**
 * Providers with an identity, by HTTP and by a batch's file: what a worker's token does and does not do is the same at each
 * door, and no door lets a session choose, see or change where tokens come from. The cloud knows which tokens were given out.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import type { SessionStatusDocument } from "../../client/sessions/status-document.ts";
import { startCloud, type Cloud } from "../support/cloud-server.ts";
import { emptyFolder, longhaul, starting, untilStatus } from "../support/commands/longhaul.ts";
import { obey } from "../support/commands/obedient-model.ts";
import { eventually } from "../support/eventually.ts";
import type { ParsedRequest, Reply } from "../support/model-server/wire.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

type Refusal = { readonly status: number; readonly text: string; readonly headers?: Record<string, string> };

interface Case {
  readonly about: string;
  /** What the session is asked to do; `THE_TOKEN` stands for the one that its requests have. */
  readonly task?: string;
  /** What the cloud answers to the first, second … token of this source, and to each later one. */
  readonly refuses?: readonly (Refusal | undefined)[];
  /** The source prints this and fails. */
  readonly fails?: string;
  readonly ends: { readonly status: "completed" } | { readonly status: "failed"; readonly says: RegExp };
  /** Tokens that the cloud gets, each with one request or more. */
  readonly tokens: number;
}

const EXPIRED = { status: 400, text: JSON.stringify({ __type: "ExpiredTokenException", message: "…" }) };
const DENIED = { status: 403, text: '{"message":"User is not authorized to perform: bedrock:InvokeModel"}' };

const cases: Readonly<Record<string, Case>> = {
  good: {
    about: "a token that the model's command prints is masked",
    task: "run: echo leaked THE_TOKEN\nsay: Done.",
    ends: { status: "completed" },
    tokens: 1,
  },
  stale: {
    about: "a token that has expired is renewed once",
    refuses: [EXPIRED, undefined],
    ends: { status: "completed" },
    tokens: 2,
  },
  barred: {
    about: "a second refusal is permanent",
    refuses: [{ status: 401, text: "no such token" }],
    ends: { status: "failed", says: /-barred \(command\).*a new one too.*Run the command by hand/ },
    tokens: 2,
  },
  denied: {
    about: "missing rights end this model only",
    refuses: [DENIED],
    ends: { status: "failed", says: /-denied \(command\).*the right to use gpt-4o/ },
    tokens: 1,
  },
  broken: {
    about: "a source that fails three times is permanent",
    fails: "run login first",
    ends: { status: "failed", says: /-broken \(command\) gives no token.*code 3: run login first/ },
    tokens: 0,
  },
};
const names = Object.keys(cases);

interface Stand {
  readonly environment: Readonly<Record<string, string>>;
  readonly cloud: Cloud;
  /** Of all tokens that the sources have printed. */
  readonly issued: () => readonly string[];
  readonly log: () => string;
}

/** A worker with its own queue whose policy has a source for each case. */
async function stand(): Promise<Stand> {
  const folder = emptyFolder();
  const book = join(folder, "issued");
  const issued = () => (existsSync(book) ? readFileSync(book, "utf8").trim().split("\n") : []);
  const refuses = (token: string): Refusal | undefined => {
    if (!issued().includes(token)) return { status: 403, text: `{"error":{"message":"who are you?"}}` };
    const name = token.split("-")[0] ?? "";
    const mine = issued().filter((one) => one.startsWith(`${name}-`));
    const answers = cases[name]?.refuses ?? [];
    return answers[Math.min(mine.indexOf(token), answers.length - 1)];
  };
  const cloud: Cloud = await startCloud("bedrock-open", (request) => spoken(request, cloud.tokens), {
    refuses,
  });
  const policy = join(folder, "policy.yaml");
  const providers = Object.fromEntries(
    names.map((name) => [`at-${name}`, providerOf(name, cloud.origin, book)]),
  );
  writeFileSync(policy, JSON.stringify({ providers }));
  const environment = {
    ...inject("commandsEnvironment"),
    LONGHAUL_TASK_QUEUE: `identity-${randomBytes(4).toString("hex")}`,
    LONGHAUL_POLICY: policy,
  };
  const worker = await startWorkerProcess({ ...environment, LONGHAUL_SHUTDOWN_GRACE_MS: "500" });
  onTestFinished(async () => void (await worker.terminate()));
  return { environment, cloud, issued, log: () => worker.log() };
}

function providerOf(name: string, origin: string, book: string) {
  const fails = cases[name]?.fails;
  const program =
    fails === undefined ? `date +${name}-%s%N | tee -a '${book}'` : `echo '${fails}' >&2; exit 3`;
  return { baseUrl: `${origin}/v1`, api: "chat", auth: { kind: "command", command: ["sh", "-c", program] } };
}

/** Follows the task, with the token of its own requests in place of the words for it. */
function spoken(request: ParsedRequest, tokens: readonly string[]): Reply {
  const token = tokens.findLast((one) => one.startsWith("good-")) ?? "";
  return JSON.parse(JSON.stringify(obey(request)).replaceAll("THE_TOKEN", token)) as Reply;
}

/** Checks the ends of all cases, what the cloud was asked, and that no token is in these texts. */
function expectEnds(
  { cloud, issued, log }: Stand,
  ended: readonly SessionStatusDocument[],
  texts: readonly string[],
): void {
  for (const [index, name] of names.entries()) {
    const { about, ends, tokens } = cases[name] as Case;
    const { status, error } = ended[index] as SessionStatusDocument;
    expect(status, about).toBe(ends.status);
    if (ends.status === "failed") expect(JSON.stringify(error), about).toMatch(ends.says);
    const sent = new Set(cloud.tokens.filter((token) => token.startsWith(`${name}-`)));
    expect(sent.size, about).toBe(tokens);
  }
  // Clients ask what a server has, and have no token for that.
  const bare = cloud.taken.filter((_request, at) => cloud.tokens[at] === "").map(({ path }) => path);
  expect(bare.filter((path) => path !== "/api/show")).toEqual([]);
  const all = [...texts, JSON.stringify(ended), log()].join("\n");
  expect(all).toContain("leaked");
  for (const token of issued()) expect(all.includes(token), `a token of ${token.split("-")[0]}`).toBe(false);
}

const taskOf = (name: string) => cases[name]?.task ?? `say: ${name}.`;
const hasEnded = ({ status }: SessionStatusDocument) => status === "completed" || status === "failed";

/** An identity, and what looks like one, in each place where a body of this API has room for a field. */
const CHOSEN = { kind: "command", command: ["sh", "-c", "echo mine"] };
const BODIES: readonly (readonly [path: string, field: string, body: object])[] = [
  ["sessions", "auth", { task: "say: No.", auth: CHOSEN }],
  ["sessions", "providers", { task: "say: No.", providers: { "at-good": { auth: CHOSEN } } }],
  ["sessions", "config", { task: "say: No.", config: "policy.yaml" }],
  ["sessions", "provider", { task: "say: No.", provider: { name: "at-good", auth: CHOSEN } }],
  ["sessions", "model", { task: "say: No.", model: { model: "at-good/gpt-4o", auth: CHOSEN } }],
];

test("by HTTP, sessions are asked for with the worker's tokens, and choose and see none", async () => {
  const made = await stand();
  const { environment } = made;
  const server = starting(["serve", "--port", "0"], { environment });
  onTestFinished(async () => {
    server.kill("SIGTERM");
    await server.ended;
  });
  const line = await eventually("its address", () => /^http.*$/m.exec(server.out())?.[0], 30_000);
  const { origin, hash } = new URL(line);
  const call = async (path: string, body?: object) => {
    const response = await fetch(`${origin}/v1/${path}`, {
      headers: { authorization: `Bearer ${hash.slice(1)}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };

  const run = randomBytes(3).toString("hex");
  for (const [path, field, body] of BODIES) {
    const refused = await call(path, { id: `never-${run}`, ...body });
    expect(refused, field).toMatchObject({ status: 400, text: expect.stringContaining(field) as string });
  }
  expect((await call(`sessions/never-${run}`)).status).toBe(404);

  const ids = names.map((name) => `http-${name}-${run}`);
  for (const [index, name] of names.entries()) {
    const body = { id: ids[index], task: taskOf(name), model: `at-${name}/gpt-4o` };
    expect(await call("sessions", body)).toMatchObject({ status: 201 });
  }
  const ended = [];
  for (const id of ids) ended.push(await untilStatus(id, hasEnded));
  const said = await call(`sessions/${ids[0]}/messages`, { text: "say: More.", auth: CHOSEN });
  expect(said).toMatchObject({ status: 400, text: expect.stringContaining("auth") as string });

  const texts = [];
  for (const id of ids)
    for (const path of ["", "/export", "/events"]) texts.push((await call(`sessions/${id}${path}`)).text);
  expectEnds(made, ended, [...texts, server.out().replace(line, ""), server.err()]);
}, 300_000);

test("by a batch's file, sessions use the worker's tokens, and choose and see none", async () => {
  const made = await stand();
  const { environment } = made;
  const cwd = emptyFolder();
  const run = randomBytes(3).toString("hex");
  const file = (name: string, ...items: readonly object[]) => {
    writeFileSync(join(cwd, name), items.map((item) => JSON.stringify(item)).join("\n"));
    return longhaul(["batch", name, "--concurrency", "6"], { cwd, environment });
  };
  const chosen = { providers: { "at-good": { baseUrl: "https://mine.example/v1", auth: CHOSEN } } };
  writeFileSync(join(cwd, "mine.yaml"), JSON.stringify(chosen));
  const own = { task: "say: No.", id: "no", model: "at-good/gpt-4o" };
  const inLine = await file(`line-${run}.jsonl`, { ...own, auth: CHOSEN }, { ...own, id: "b", ...chosen });
  expect(inLine).toMatchObject({ code: 2, out: "" });
  expect(inLine.err).toMatch(/jsonl:1: .*auth[\s\S]*jsonl:2: .*providers/);
  const byFile = await file(`file-${run}.jsonl`, { ...own, config: "mine.yaml" });
  expect(byFile).toMatchObject({ code: 2, out: "" });
  expect(byFile.err).toMatch(/auth.*LONGHAUL_POLICY/s);
  expect((await longhaul(["status", `line-${run}-no`], { environment })).code).toBe(5);
  writeFileSync(join(cwd, "longhaul.yaml"), JSON.stringify(chosen));
  const beside = await file(`beside-${run}.jsonl`, own);
  expect(beside).toMatchObject({ code: 2, out: "" });
  expect(beside.err).toMatch(/auth.*LONGHAUL_POLICY/s);
  writeFileSync(join(cwd, "longhaul.yaml"), "");

  const batch = `ids-${run}`;
  const items = names.map((name) => ({ id: name, task: taskOf(name), model: `at-${name}/gpt-4o` }));
  const done = await file(`${batch}.jsonl`, ...items);
  expect(done.code, done.err).toBe(1);
  const ended = [];
  const texts = [done.out, done.err];
  for (const name of names) {
    ended.push(await untilStatus(`${batch}-${name}`, hasEnded));
    texts.push((await longhaul(["export", `${batch}-${name}`], { environment })).out);
  }
  texts.push((await longhaul(["batch", "status", batch, "--json"], { environment })).out);
  expectEnds(made, ended, texts);
}, 300_000);
