import { request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { begin, longhaul, starting, untilStatus } from "../support/commands/longhaul.ts";
import { eventually } from "../support/eventually.ts";
import { bigPng } from "../support/images.ts";

interface Served {
  readonly url: string;
  readonly token: string;
}

async function serving(...flags: readonly string[]): Promise<Served & { readonly notes: () => string }> {
  const server = starting(["serve", "--port", "0", ...flags]);
  onTestFinished(async () => {
    server.kill("SIGTERM");
    expect((await server.ended).code).toBe(130);
  });
  const line = await eventually(
    "the line with the address",
    () => /^http.*$/m.exec(server.out())?.[0],
    30_000,
  );
  const { origin, hash } = new URL(line);
  return { url: origin, token: hash.slice(1), notes: server.err };
}

const json = { "content-type": "application/json" };

function api({ url, token }: Served) {
  return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : json), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
}

/** With headers that `fetch` does not allow to set. */
function statusWith(
  { url, token }: Served,
  headers: Record<string, string>,
  path = "/v1/sessions",
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(
    `${url}${path}`,
    { headers: { authorization: `Bearer ${token}`, ...headers } },
    (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    },
  );
  sent.on("error", reject).end();
  return promise;
}

/** With a target that no client's own parser would let through. */
async function rawStatus({ url }: Served, target: string): Promise<number> {
  const { host, hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return Number(/^HTTP\/1.1 (\d+)/.exec(await text(socket))?.[1]);
}

interface Heard {
  readonly ids: number[];
  readonly types: string[];
}

/** Reads a stream until it ends, or until that many events have come. */
async function hear(
  { url, token }: Served,
  session: string,
  { after, most = Infinity }: { after?: number; most?: number } = {},
): Promise<Heard> {
  const left = new AbortController();
  const response = await fetch(`${url}/v1/sessions/${session}/events`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(after === undefined ? {} : { "last-event-id": String(after) }),
    },
    signal: left.signal,
  });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  // Otherwise nginx holds events back.
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  const heard: Heard = { ids: [], types: [] };
  let rest = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const id = /^id: (\d+)$/m.exec(block)?.[1];
      if (block.startsWith("event: end")) heard.types.push("end");
      if (id === undefined) continue;
      heard.ids.push(Number(id));
      heard.types.push((JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "") as { type: string }).type);
      if (heard.ids.length === most) {
        left.abort();
        return heard;
      }
    }
  }
  return heard;
}

test("behind a proxy with TLS the proxy's name and origin are let in, and no other", async () => {
  const served = await serving("--behind", "https://agents.example.com");
  const origin = "https://agents.example.com";
  expect(await statusWith(served, { host: "agents.example.com", origin })).toBe(200);
  // As nginx asks by default.
  expect(await statusWith(served, { origin })).toBe(200);
  expect(await statusWith(served, { host: "agents.example.com", origin: "https://evil.example" })).toBe(403);
  expect(await statusWith(served, { origin: "http://agents.example.com" })).toBe(200);
  const { code, err } = await longhaul(["serve", "--behind", "agents.example.com/path"]);
  expect({ code, err }).toMatchObject({
    code: 2,
    err: expect.stringContaining("https://longhaul.example.com"),
  });
});

test("no request gets in without the token, by another host name or from another site", async () => {
  const served = await serving();
  const { host } = new URL(served.url);
  expect(await statusWith(served, {})).toBe(200);
  expect(await statusWith(served, { authorization: "" })).toBe(401);
  expect(await statusWith(served, { authorization: "Bearer wrong" })).toBe(401);
  expect(await statusWith(served, { host: "evil.example" })).toBe(403);
  expect(await statusWith(served, { origin: "http://evil.example" })).toBe(403);
  expect(await statusWith(served, { origin: `http://${host}` })).toBe(200);
  expect(await statusWith(served, { host: "evil.example" }, "/")).toBe(403);
  expect(await statusWith(served, { origin: "https://agents.example.com" })).toBe(403);
  const page = await fetch(served.url);
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(
    /^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; connect-src 'self'/,
  );
  expect(await page.text()).not.toContain(served.token);
  const call = api(served);
  expect((await call("GET", "nothing")).status).toBe(404);
  expect(await call("DELETE", "sessions")).toMatchObject({
    status: 405,
    body: { error: { message: "This path has only GET and POST." } },
  });
  const put = await fetch(`${served.url}/v1/sessions/x/events`, {
    method: "PUT",
    headers: { authorization: `Bearer ${served.token}` },
  });
  expect([put.status, put.headers.get("allow")]).toEqual([405, "GET"]);
  for (const path of [
    "sessions/no-such-session",
    "sessions/a%00b",
    "sessions/a%00b/events",
    "sessions?parent=%00",
  ])
    expect((await call("GET", path)).status).toBe(404);
  expect((await call("GET", "batches/a%00b")).status).toBe(409);
  for (const [path, text, headers] of [
    [
      "sessions/x/events",
      "Last-Event-ID: expected the number of an event, such as 120.",
      { "last-event-id": "x" },
    ],
    ["sessions/x/events?from=1.5", "from: expected the number of an event, such as 120.", {}],
    ["sessions?limit=many", "limit: expected a whole number from 1 to 200, such as 50.", {}],
    ["sessions?all=maybe", "all: expected true or false.", {}],
    ["sessions?limits=1", "unknown key limits: did you mean limit?", {}],
    ["sessions/x/export?format=pdf", "format: expected own or atif.", {}],
  ] as const)
    expect(await call("GET", path, undefined, { ...headers })).toMatchObject({
      status: 400,
      body: { error: { message: text } },
    });
  for (const repo of ["file:///etc", "FILE:///etc", "file://localhost/etc", " file:///etc", "fi\tle:///etc"])
    expect(await call("POST", "sessions", { task: "say: no", repo }), repo).toMatchObject({ status: 400 });
  // Which are no addresses.
  for (const target of ["//", "http://["]) expect(await rawStatus(served, target)).toBe(400);
  const form = await fetch(`${served.url}/v1/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${served.token}`, "content-type": "text/plain" },
    body: '{"task":"say: no"}',
  });
  expect(form.status).toBe(400);
});

const others = Object.values(networkInterfaces()).flatMap((addresses = []) =>
  addresses.flatMap(({ address, family, internal }) => (internal || family !== "IPv4" ? [] : [address])),
);

test.skipIf(others.length === 0)(
  "says where other machines reach it, and that it is plain HTTP",
  async () => {
    const [served, local] = await Promise.all([serving("--host", "0.0.0.0"), serving()]);
    const list = await eventually("the addresses", () => /reach it at (.*), with/.exec(served.notes())?.[1]);
    const { port } = new URL(served.url);
    expect(list.split(", ")).toContain(`http://${others[0]}:${port}`);
    for (const url of list.split(", ")) expect((await fetch(url)).status).toBe(200);
    expect(served.notes()).toContain("plain HTTP");
    expect(local.notes()).not.toContain("plain HTTP");
  },
);

test("a session is started, asked, answered and guided, and its events resume where they stopped", async () => {
  const served = await serving();
  const call = api(served);
  const ask = JSON.stringify({ question: "<script>npm</script> or pnpm?", options: ["npm", "pnpm"] });
  const started = await call("POST", "sessions", { task: `ask: ${ask}\nsay: Done.` });
  expect(started.status).toBe(201);
  const id = String(started.body["id"]);
  const first = await hear(served, id, { most: 2 });
  await untilStatus(id, ({ status }) => status === "waiting");
  // Other files' sessions wait next to it.
  const waiting: unknown = (await call("GET", "sessions?status=waiting")).body;
  expect(waiting).toContainEqual(expect.objectContaining({ id }));
  expect((await call("GET", `sessions/${id}/questions`)).body).toMatchObject([
    { id: "s1c0", text: "<script>npm</script> or pnpm?" },
  ]);
  expect((await call("POST", `sessions/${id}/answers`, { option: 9 })).status).toBe(409);
  expect((await call("POST", `sessions/${id}/answers`, {})).status).toBe(400);
  expect(await call("POST", `sessions/${id}/answers`, { option: 2 })).toMatchObject({
    status: 200,
    body: { session: id, question: "s1c0" },
  });
  const rest = await hear(served, id, { after: first.ids.at(-1) ?? 0 });
  const all = [...first.ids, ...rest.ids];
  expect(all).toEqual([...new Set(all)].toSorted((a, b) => a - b));
  expect(rest.types.slice(-2)).toEqual(["session:ended", "end"]);

  expect((await call("POST", `sessions/${id}/messages`, { text: "say: Second." })).body).toMatchObject({
    queued: true,
  });
  await untilStatus(id, ({ result, status }) => status === "completed" && result === "Second.");
  const gap = await hear(served, id, { after: all.at(-1) ?? 0 });
  expect(gap.types[0]).not.toBe("end");
  expect(gap.types.at(-1)).toBe("end");
});

test("a running session is interrupted and cancelled, and a message is taken back", async () => {
  const served = await serving();
  const call = api(served);
  const id = await begin("run: sleep 100\nsay: Not heard.");
  await untilStatus(id, ({ step }) => step === 1);
  await call("POST", `sessions/${id}/messages`, { text: "say: no", id: "one" });
  expect((await call("DELETE", `sessions/${id}/messages/one`)).status).toBe(200);
  expect((await call("DELETE", `sessions/${id}/messages/one`)).status).toBe(409);
  expect((await call("POST", `sessions/${id}/interrupt`, { text: "run: sleep 101" })).status).toBe(200);
  await untilStatus(id, ({ step }) => step === 2);
  expect((await call("POST", `sessions/${id}/cancel`, {})).status).toBe(200);
  expect((await call("GET", `sessions/${id}`)).body).toMatchObject({ status: "cancelled" });
  const done = await begin("run: sleep 100\nsay: Done.");
  await untilStatus(done, ({ step }) => step === 1);
  // No words are no message.
  expect((await call("POST", `sessions/${done}/interrupt`, { text: " " })).status).toBe(200);
  await untilStatus(done, ({ status }) => status === "completed");
  expect((await call("GET", `sessions/${done}`)).body).toMatchObject({ queue: [] });
  expect((await call("POST", `sessions/${done}/interrupt`, {})).status).toBe(409);
});

test("a message may have files of up to 8 MiB, which are stored; anything else is refused", async () => {
  const [served, id] = await Promise.all([serving(), begin("run: sleep 100\nsay: Not heard.")]);
  const at = api(served);
  await untilStatus(id, ({ step }) => step === 1);
  const data = bigPng(8_000_000, 11).toString("base64");
  const files = [{ name: "large.png", data }];
  expect(await at("POST", `sessions/${id}/messages`, { text: "say: Seen.", files })).toMatchObject({
    status: 200,
    body: { queued: true },
  });
  const none = [{ name: "a.png", data: Buffer.from("none").toString("base64") }];
  expect((await at("POST", `sessions/${id}/messages`, { text: "Look.", files: none })).status).toBe(400);
  const odd = [{ name: "a.png", data: "no base64!" }];
  expect((await at("POST", `sessions/${id}/messages`, { text: "Look.", files: odd })).status).toBe(400);
  expect((await at("POST", `sessions/${id}/interrupt`, {})).status).toBe(200);
  await untilStatus(id, ({ status }) => status === "completed");
  expect(JSON.stringify((await at("GET", `sessions/${id}/export`)).body)).toContain("large.png");
});
