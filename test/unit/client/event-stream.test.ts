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
