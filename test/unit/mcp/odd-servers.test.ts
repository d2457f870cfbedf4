/** Servers over HTTP whose answers differ from the protocol's. */
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { mcpServersSchema } from "../../../activities/config/mcp-settings.ts";
import { defaultLimits } from "../../../activities/config/run-policy.ts";
import { createLoadedMcp } from "../../../activities/mcp/create-mcp.ts";
import type { Mcp, McpCall, ServerOf } from "../../../activities/mcp/mcp.ts";
import type { ToolContext } from "../../../activities/tools/tool.ts";
import { listen } from "../../support/listen.ts";
import { createFakeMemory } from "../../support/tool-context.ts";

interface Asked {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly cursor?: string };
}

/** What a request gets: a result, or a whole answer. */
type Answer = (
  asked: Asked,
) =>
  | { readonly result: unknown }
  | { readonly status: number; readonly body: string }
  | "silence"
  | undefined;

const open: Mcp[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((mcp) => mcp.close()));
});

/** Of the older revisions, with sessions; by events or by one JSON document. */
async function serve(answer: Answer, kind: "events" | "json" = "json", more: object = {}) {
  let session = 0;
  const methods: string[] = [];
  const send = (response: ServerResponse, message: object, headers = {}) => {
    const body = JSON.stringify(message);
    response.writeHead(200, {
      "content-type": kind === "json" ? "application/json" : "text/event-stream",
      ...headers,
    });
    // In two pieces, as networks do.
    response.write(kind === "json" ? body.slice(0, 9) : `event: message\ndata: ${body.slice(0, 9)}`);
    response.end(kind === "json" ? body.slice(9) : `${body.slice(9)}\n\n`);
  };
  const http = createServer((request, response) => {
    void (async () => {
      const sent = await text(request);
      const asked = (sent === "" ? { method: "" } : JSON.parse(sent)) as Asked;
      if (request.method !== "POST") return void response.writeHead(405).end();
      methods.push(asked.method);
      if (asked.method === "initialize") {
        session += 1;
        const result = {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "odd", version: "1" },
        };
        return send(
          response,
          { jsonrpc: "2.0", id: asked.id, result },
          { "mcp-session-id": String(session) },
        );
      }
      if (request.headers["mcp-session-id"] !== String(session))
        return void response.writeHead(400, { "content-type": "application/json" }).end(FORGOTTEN);
      if (asked.id === undefined) return void response.writeHead(202).end();
      const given = answer(asked) ?? { result: {} };
      if (given === "silence") return;
      if ("status" in given)
        return void response.writeHead(given.status, { "content-type": "application/json" }).end(given.body);
      send(response, { jsonrpc: "2.0", id: asked.id, ...given });
    })();
  });
  const url = `http://127.0.0.1:${await listen(http)}/mcp`;
  const settings = mcpServersSchema.parse({ odd: { url, startTimeout: 3_000, timeout: 2_000, ...more } })[
    "odd"
  ];
  if (settings === undefined) throw new Error("no settings");
  const server: ServerOf = { sessionId: "s", name: "odd", settings };
  const mcp = createLoadedMcp({ variables: {} }, undefined);
  open.push(mcp);
  let reconnected = 0;
  const call = {
    server,
    era: "2025-06-18",
    entry: { name: "work", description: "", inputSchema: {} },
    input: {},
    isRepeatable: false,
    state: { round: 0, questions: 0 },
    task: undefined,
    answers: new Map(),
    attempt: "1",
    traceparent: undefined,
    questionId: String,
    keepState: async () => undefined,
    onListed: async () => undefined,
    onReconnected: async () => void (reconnected += 1),
  } satisfies McpCall;
  return {
    methods,
    list: () => mcp.list(server, undefined, AbortSignal.timeout(20_000)),
    call: (as: Partial<McpCall> = {}) => mcp.call({ ...call, ...as }, context),
    restart: () => (session += 10),
    reconnected: () => reconnected,
  };
}

const FORGOTTEN =
  '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}';

const context: ToolContext = {
  callKey: "s1c0",
  resumed: false,
  sandbox: () => Promise.reject(new Error("no sandbox")),
  limits: defaultLimits("odd__work"),
  signal: new AbortController().signal,
  memory: createFakeMemory(),
  maskWindow: (shown, from, to) => shown.slice(from, to),
  onProgress: () => undefined,
};

const calls =
  (result: unknown): Answer =>
  ({ method }) =>
    method === "tools/call" ? { result } : { result: { tools: [] } };

describe.each(["events", "json"] as const)("a server that answers by %s", (kind) => {
  it.each<[string, unknown, object]>([
    ["a text", "done", { text: "done" }],
    ["null", null, { text: "[an empty result]" }],
    [
      "null as annotations",
      { content: [{ type: "text", text: "done", annotations: null }], isError: null },
      { text: "done" },
    ],
    [
      "an unknown kind",
      {
        content: [
          { type: "text", text: "done" },
          { type: "table", rows: 1 },
        ],
      },
      { text: 'done\n[a part of the unknown kind table: {"type":"table","rows":1}]' },
    ],
    ["no content beside data", { content: null, structuredContent: { a: 1 } }, { text: '{"a":1}' }],
  ])("has its result read: %s", async (_, result, read) => {
    const { call } = await serve(calls(result), kind);
    expect(await call()).toEqual(read);
  });

  it("that has forgotten its session gets the call once more, in a new one", async () => {
    const { call, restart, reconnected, methods } = await serve(calls({ content: [] }), kind);
    await call();
    restart();
    expect(await call()).toEqual({ text: "[an empty result]" });
    expect(reconnected()).toBe(1);
    expect(methods.filter((method) => method === "tools/call")).toHaveLength(3);
  });
});

it("lists its tools again after the server has forgotten the session", async () => {
  const { list, restart } = await serve(() => ({ result: { tools: [{ name: "a" }] } }));
  await list();
  restart();
  expect((await list()).tools).toMatchObject([{ name: "a" }]);
});

const unlisted = (answers: readonly (readonly [status: number, body: string])[]): [Answer, () => number] => {
  let asked = 0;
  const answer: Answer = ({ method }) => {
    if (method !== "tools/list") return undefined;
    const [status, body] = answers[asked++] ?? [200, ""];
    return status === 200 ? { result: { tools: [{ name: "a" }] } } : { status, body };
  };
  return [answer, () => asked];
};

it("is asked for its tools again while it says that it cannot at the moment", async () => {
  const [answer, asked] = unlisted([
    [503, "still starting"],
    [429, "too many"],
  ]);
  expect((await (await serve(answer)).list()).tools).toMatchObject([{ name: "a" }]);
  expect(asked()).toBe(3);
});

it.each([403, 404, 418, 501, 507])(
  "is not asked again after %i, which is told in its words",
  async (status) => {
    const [answer, asked] = unlisted(Array.from({ length: 9 }, () => [status, "quota of team Q-17 ended"]));
    await expect((await serve(answer)).list()).rejects.toThrow(
      new RegExp(`HTTP status ${status}: .*quota of team Q-17 ended`),
    );
    // Once more in a new session, which a server may have forgotten.
    expect(asked()).toBe(status === 404 ? 2 : 1);
  },
);

it("is asked as long as it has to start if it is required, and then its own words are told", async () => {
  const [answer, asked] = unlisted(Array.from({ length: 99 }, () => [503, "database Q-17 is loading"]));
  const { list } = await serve(answer, "json", { required: true, startTimeout: 2_500 });
  await expect(list()).rejects.toThrow(/within 2.5 s .*503: .*database Q-17 is loading/);
  expect(asked()).toBeGreaterThan(1);
});

it.each<[number, boolean, RegExp]>([
  [429, false, /^The call failed\. .*429: .*zq.* The same call may succeed later\.$/],
  [503, true, /^The call failed\. .*503: .*zq.* It can be repeated\.$/],
  [507, true, /^The call failed\. .*507: .*zq\.$/],
  [402, false, /^The call failed\. .*402: .*zq\.$/],
  [413, false, /^The call failed\. .*413: .*zq\.$/],
  [503, false, /^It is not known how this call ended: .*503: .*zq/],
])("says of a call with %i whether it may be repeated: %s", async (status, isRepeatable, said) => {
  const { call } = await serve(({ method }) =>
    method === "tools/call" ? { status, body: "zq" } : { result: { tools: [] } },
  );
  expect((await call({ isRepeatable })).text).toMatch(said);
});

it("does not call again if the new session is refused too", async () => {
  let made = 0;
  const { call } = await serve(({ method }) => {
    if (method !== "tools/call") return { result: { tools: [] } };
    made += 1;
    return { status: 404, body: "Session not found" };
  });
  expect(await call()).toMatchObject({
    isError: true,
    text: expect.stringContaining("HTTP status 404") as string,
  });
  expect(made).toBe(2);
});

it.each<[string, number, string]>([
  ["another refusal", 400, "Bad Request: name is missing"],
  ["a failure", 500, "Session store is down"],
])("does not call again after %s", async (_, status, body) => {
  let made = 0;
  const { call } = await serve(({ method }) => {
    if (method === "tools/call") made += 1;
    return method === "tools/call" ? { status, body } : { result: { tools: [] } };
  });
  await call();
  expect(made).toBe(1);
});

it.each<[string, Answer]>([
  [
    "is not JSON",
    ({ method }) => (method === "tools/call" ? { status: 200, body: "<html>" } : { result: { tools: [] } }),
  ],
  ["is of an unknown kind", calls({ resultType: "later" })],
])("tells that a call was made whose answer %s", async (_, answer) => {
  const { call } = await serve(answer);
  const result = await call();
  expect(result.unknown).toBeUndefined();
  if (result.isError === true)
    expect(result.text).toMatch(
      /^odd answered this call, and its answer cannot be read: .*look at what it has done/s,
    );
});

describe("a list of several pages", () => {
  const page = (name: string, nextCursor: unknown) => ({ result: { tools: [{ name }], nextCursor } });
  const names = async (answer: Answer) => {
    const { list } = await serve(answer);
    const { tools, isPartial } = await list();
    return { names: tools.map(({ name }) => name), isPartial };
  };

  it("ends with an empty cursor", async () => {
    expect(await names(({ params }) => (params?.cursor === "2" ? page("b", "") : page("a", "2")))).toEqual({
      names: ["a", "b"],
      isPartial: undefined,
    });
  });

  it.each<[string, Answer]>([
    ["fails", ({ params }) => (params?.cursor === undefined ? page("a", "2") : { status: 500, body: "no" })],
    ["is silent", ({ params }) => (params?.cursor === undefined ? page("a", "2") : "silence")],
    ["never ends", ({ params }) => page("a", String(Number(params?.cursor ?? 0) + 1))],
  ])("keeps the pages that came when the next one %s", async (_, answer) => {
    expect(await names(answer)).toEqual({ names: ["a"], isPartial: true });
  });
});
