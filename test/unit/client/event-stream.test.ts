import { once } from "node:events";
import { createServer, get } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import type { Longhaul } from "../../../client/library/types.ts";
import { streamEvents } from "../../../client/serve/server.ts";
import { listen } from "../../support/listen.ts";

it("is not followed for a client that left before its session was found", async () => {
  const left = Promise.withResolvers<undefined>();
  const followed = Promise.withResolvers<AbortSignal | undefined>();
  const client = {
    status: async (id: string) => {
      await left.promise;
      return { id };
    },
    // Ends as the library's do, when its signal is aborted.
    events: (_id: string, { signal }: { readonly signal?: AbortSignal } = {}) => ({
      async next() {
        followed.resolve(signal);
        if (signal !== undefined && !signal.aborted) await once(signal, "abort");
        return { done: true, value: undefined };
      },
    }),
  } as unknown as Longhaul;
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const server = createServer((request, response) => {
    response.on("close", () => left.resolve(undefined));
    void streamEvents({ client, id: "a", ended: ended.signal }, request, response, new URLSearchParams());
  });
  const asking = get(`http://127.0.0.1:${await listen(server)}/`).on("error", () => undefined);
  await once(server, "request");
  asking.destroy();
  expect((await followed.promise)?.aborted).toBe(true);
});

it("sends each event with what it says in words, and one that has no words as it is", async () => {
  const common = { sessionId: "a", epoch: 1, step: 1, attempt: 1, at: "2026-01-02T03:04:05.000Z" };
  const lost = { ...common, seq: 1, type: "sandbox:lost", data: { container: "c", message: "gone" } };
  const saved = { ...common, seq: 2, type: "sandbox:saved", data: { files: 1, bytes: 2 } };
  const newer = { ...common, seq: 3, type: "of:later", data: {} };
  const client = {
    status: (id: string) => Promise.resolve({ id }),
    async *events() {
      yield* [lost, saved, newer];
      return await Promise.resolve({ status: "completed" });
    },
  } as unknown as Longhaul;
  const ended = new AbortController();
  const server = createServer((request, response) => {
    void streamEvents({ client, id: "a", ended: ended.signal }, request, response, new URLSearchParams());
  });
  const text = await (await fetch(`http://127.0.0.1:${await listen(server)}/`)).text();
  const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as unknown);
  expect(frames).toEqual([
    { ...lost, sentences: [{ tone: "warn", mark: "!", text: "sandbox lost: gone" }] },
    saved,
    newer,
    { status: "completed" },
  ]);
});
