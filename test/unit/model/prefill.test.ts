/** A server that reads its prompt for longer than any client's default timeout: only our deadlines count. */
import { createServer, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { Agent, request } from "undici";
import { expect, it, onTestFinished } from "vitest";
import { createAiSdkModel } from "../../../activities/model/ai-sdk.ts";
import { modelRequest } from "../../support/model-request.ts";
import { listen } from "../../support/listen.ts";

/** undici's clock for waits of a second or more: it counts its own ticks, so a test can advance it. */
const clock = createRequire(import.meta.url)("undici/lib/util/timers.js") as { tick(ms: number): void };
/** Its timers start at the tick after they were set. */
function pass(ms: number): void {
  clock.tick(1_000);
  clock.tick(ms);
}
/** Longer than undici's 300 s for headers and for a body, and than its 10 s for a connection. */
const LONG_MS = 3_600_000;

const answer = [
  { choices: [{ index: 0, delta: { role: "assistant", content: "Read." }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
].map(
  (chunk) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", ...chunk })}\n\n`,
);

/** Resolves with each response once its request is read, and answers nothing by itself. */
async function startSilentServer() {
  const waiting: ((response: ServerResponse) => void)[] = [];
  const come: ServerResponse[] = [];
  const server = createServer((incoming, response) => {
    incoming.resume().on("end", () => {
      const next = waiting.shift();
      if (next === undefined) come.push(response);
      else next(response);
    });
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    next: () =>
      new Promise<ServerResponse>((resolve) => {
        const here = come.shift();
        if (here === undefined) waiting.push(resolve);
        else resolve(here);
      }),
  };
}

it(
  "waits an hour for headers and first bytes, where undici's own limits would end it",
  { tags: ["S6"] },
  async () => {
    const server = await startSilentServer();
    const usual = new Agent();
    onTestFinished(() => usual.destroy());
    const other = request(server.url, { dispatcher: usual }).catch((error: { code?: string }) => error.code);
    await server.next();

    const provider = { name: "acme", baseUrl: `${server.url}/v1` };
    const model = createAiSdkModel({ environment: {}, mask: (text) => text });
    const deadlines = { connectMs: LONG_MS, firstTokenMs: LONG_MS, silenceMs: LONG_MS, answerMs: LONG_MS };
    const asked = model.ask(
      modelRequest({ api: "chat", model: "acme/m", modelName: "m", provider, deadlines }),
      () => undefined,
      new AbortController().signal,
    );
    const response = await server.next();
    pass(LONG_MS);
    expect(await other).toBe("UND_ERR_HEADERS_TIMEOUT");
    response.writeHead(200, { "content-type": "text/event-stream" }).write(": reading the prompt\n\n");
    pass(LONG_MS);
    response.end(`${answer.join("")}data: [DONE]\n\n`);
    expect((await asked).content).toMatchObject([{ type: "text", text: "Read." }]);
  },
);
