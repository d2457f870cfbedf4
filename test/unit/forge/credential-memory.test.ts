/** What a worker remembers of a credential: limits are kept for all that use it, and what has not changed is not sent again. */
import { createServer, type IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import { askForge, type ForgeCall } from "../../../activities/forge/calls.ts";
import { keepAnswer, keptAnswer, waitForTurn } from "../../../activities/forge/credential-memory.ts";
import { listen } from "../../support/listen.ts";

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const HOUR_MS = 3_600_000;
const inAnHour = () => String(Math.ceil((Date.now() + HOUR_MS) / 1_000));

async function forgeThat(answer: (asked: IncomingMessage, count: number) => Answer) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    request.resume();
    asked.push(request);
    const { status = 200, headers = {}, body = { n: asked.length } } = answer(request, asked.length);
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(status === 304 ? undefined : JSON.stringify(body));
  });
  const forge = parseForge(`http://127.0.0.1:${await listen(server)}/acme/app.git`, "github");
  const as = (token: string, more: Partial<ForgeCall> = {}): ForgeCall => ({
    forge: forge ?? expect.fail("no forge"),
    token,
    signal: AbortSignal.timeout(60_000),
    ...more,
  });
  return { as, asked };
}

describe("an answer that has not changed", () => {
  it("is not sent again, and is the same", async () => {
    const { as, asked } = await forgeThat(({ headers }) =>
      headers["if-none-match"] === '"a"' ? { status: 304 } : { headers: { etag: '"a"' } },
    );
    expect(await askForge(as("one"), "GET", "/x")).toEqual({ n: 1 });
    expect(await askForge(as("one"), "GET", "/x")).toEqual({ n: 1 });
    expect(asked.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"a"']);
  });

  it("is one to the same credential and address alone, and to no order", async () => {
    const { as, asked } = await forgeThat(() => ({ headers: { etag: '"a"' } }));
    await askForge(as("one"), "GET", "/x");
    await askForge(as("two"), "GET", "/x");
    await askForge(as("one"), "GET", "/y");
    await askForge(as("one"), "POST", "/x", {});
    expect(asked.map(({ headers }) => headers["if-none-match"])).toEqual(Array(4).fill(undefined));
  });

  it("is replaced by a new one", async () => {
    const { as, asked } = await forgeThat((_asked, count) => ({ headers: { etag: `"${count}"` } }));
    for (const n of [1, 2, 3]) expect(await askForge(as("one"), "GET", "/x")).toEqual({ n });
    expect(asked.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"1"', '"2"']);
  });

  it("is kept within bounds: the one that was used least recently goes first", async () => {
    const { as } = await forgeThat(() => ({}));
    const at = (path: string) => ({ ...as("one"), path });
    keepAnswer(at("/first"), "e", "f");
    keepAnswer(at("/too-long"), "e", "x".repeat((1 << 20) + 1));
    for (let n = 0; n < 20; n += 1) {
      keepAnswer(at(`/${n}`), "e", "x".repeat(1 << 20));
      keptAnswer(at("/first"));
    }
    expect(keptAnswer(at("/first"))?.text).toBe("f");
    expect(keptAnswer(at("/too-long"))).toBeUndefined();
    const kept = Array.from({ length: 20 }, (_, n) => keptAnswer(at(`/${n}`))).filter(Boolean);
    expect(kept).toHaveLength(15);
    expect(keptAnswer(at("/19"))).toBeDefined();
  });
});

describe("a forge that wants to be left alone", () => {
  it("is not asked again by anybody with the same credential, for as long as it says", async () => {
    const { as, asked } = await forgeThat(({ headers }) =>
      headers.authorization === "Bearer one" ? { status: 403, headers: { "retry-after": "3600" } } : {},
    );
    const told = { status: 403, isPassing: true, retryAfterMs: 900_000, limitMs: HOUR_MS + 1_000 };
    await expect(askForge(as("one", { isLook: true }), "GET", "/x")).rejects.toMatchObject(told);
    await expect(askForge(as("one"), "POST", "/y", {})).rejects.toMatchObject({
      status: 429,
      isPassing: true,
      limitMs: expect.closeTo(HOUR_MS, -4),
    });
    expect(asked).toHaveLength(1);
    expect(await askForge(as("two"), "GET", "/x")).toEqual({ n: 2 });
  });

  it("may say so in words alone", async () => {
    const body = { message: "You have exceeded a secondary rate limit." };
    const { as, asked } = await forgeThat(() => ({ status: 403, body }));
    await expect(askForge(as("one"), "GET", "/x")).rejects.toMatchObject({ limitMs: 61_000 });
    await expect(askForge(as("one"), "GET", "/x")).rejects.toMatchObject({ status: 429 });
    expect(asked).toHaveLength(1);
  });

  it("is asked again when that is over", async () => {
    const { as } = await forgeThat(() => ({ status: 403, headers: { "retry-after": "60" } }));
    await expect(askForge(as("one"), "GET", "/x")).rejects.toMatchObject({ status: 403 });
    const request = { ...as("one"), path: "/x" };
    expect(waitForTurn(request, Date.now())).toBeGreaterThan(59_000);
    expect(waitForTurn(request, Date.now(), performance.now() + 62_000)).toBeUndefined();
  });
});

describe("requests that are left", () => {
  const counting = (first: number) => {
    const reset = inAnHour();
    return forgeThat((_asked, count) => ({
      headers: { "x-ratelimit-remaining": String(first - count), "x-ratelimit-reset": reset },
    }));
  };

  it("are spent on looking by half; what is to be written has the rest", async () => {
    const { as, asked } = await counting(11);
    const look = () => askForge(as("one", { isLook: true }), "GET", "/x");
    for (let n = 1; n <= 6; n += 1) await look();
    await expect(look()).rejects.toMatchObject({ status: 429, isPassing: true });
    expect(asked).toHaveLength(6);
    for (let n = 1; n <= 5; n += 1) await askForge(as("one"), "POST", "/x", {});
    await expect(askForge(as("one"), "POST", "/x", {})).rejects.toMatchObject({ status: 429 });
    expect(asked).toHaveLength(11);
  });

  it("are counted anew when the forge does", async () => {
    const { as } = await counting(2);
    await askForge(as("one"), "GET", "/x");
    await askForge(as("one"), "GET", "/x");
    const request = { ...as("one"), path: "/x" };
    expect(waitForTurn(request, Date.now())).toBeGreaterThan(HOUR_MS - 60_000);
    expect(waitForTurn(request, Date.now() + HOUR_MS + 2_000)).toBeUndefined();
  });

  it("are counted apart for GitHub's two APIs", async () => {
    const { as } = await counting(1);
    await askForge(as("one"), "POST", "/graphql", {});
    expect(waitForTurn({ ...as("one"), path: "/graphql" }, Date.now())).toBeDefined();
    expect(waitForTurn({ ...as("one"), path: "/x" }, Date.now())).toBeUndefined();
  });
});
