/** A provider behind the proxy that the environment names. */
import { createServer, request as forward, type Server } from "node:http";
import { connect } from "node:net";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { ModelAnswer } from "../../activities/model/model.ts";
import { modelRequest, play } from "../support/model-request.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { listen } from "../support/listen.ts";

afterEach(() => void vi.unstubAllEnvs());

/** Connects every name to one port of this machine, and notes the names: plain requests as they are, all else by CONNECT. */
async function startProxy(port: number): Promise<{ readonly url: string; readonly tunnels: string[] }> {
  const tunnels: string[] = [];
  const proxy: Server = createServer((request, response) => {
    const { pathname, host } = new URL(request.url ?? "");
    tunnels.push(host);
    const { method, headers } = request;
    const upstream = forward({ port, path: pathname, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    request.pipe(upstream);
  });
  proxy.on("connect", (request, socket, head) => {
    tunnels.push(request.url ?? "");
    const upstream = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [upstream, socket])
      end.on("error", () => [upstream, socket].forEach((connection) => connection.destroy()));
    onTestFinished(() => [upstream, socket].forEach((connection) => connection.destroy()));
  });
  return { url: `http://127.0.0.1:${await listen(proxy)}`, tunnels };
}

async function ask(baseUrl: string): Promise<ModelAnswer> {
  const environment = { OPENAI_API_KEY: "sk-test-secret", OPENAI_BASE_URL: baseUrl };
  const model = createAiSdkModel({ environment, mask: (said) => said });
  return model.ask(modelRequest(), () => undefined, new AbortController().signal);
}

it("is asked through HTTP_PROXY, without any switch of Node's", async () => {
  const server = await play(scriptedModel().says("Hi."));
  const proxy = await startProxy(Number(new URL(server.baseUrl).port));
  vi.stubEnv("HTTP_PROXY", proxy.url);
  vi.stubEnv("NO_PROXY", "");
  expect((await ask("http://models.example/v1")).content).toMatchObject([{ text: "Hi." }]);
  expect(proxy.tunnels).toEqual(["models.example"]);
});

it("is reached through a tunnel of HTTPS_PROXY if its address is https", async () => {
  const server = await play(scriptedModel());
  const proxy = await startProxy(Number(new URL(server.baseUrl).port));
  vi.stubEnv("HTTPS_PROXY", proxy.url);
  vi.stubEnv("NO_PROXY", "");
  // The server behind it speaks no TLS: that the tunnel was asked for is what counts.
  await expect(ask("https://models.example/v1")).rejects.toMatchObject({ class: "rejected" });
  expect(proxy.tunnels).toEqual(["models.example:443"]);
});

it("is asked directly if NO_PROXY names it, and on this machine always", async () => {
  const server = await play(scriptedModel().says("Hi."));
  const proxy = await startProxy(Number(new URL(server.baseUrl).port));
  vi.stubEnv("HTTP_PROXY", proxy.url);
  vi.stubEnv("NO_PROXY", "models.invalid");
  await expect(ask("http://models.invalid/v1")).rejects.toMatchObject({ class: "unavailable" });
  expect((await ask(server.baseUrl)).content).toMatchObject([{ text: "Hi." }]);
  expect(proxy.tunnels).toEqual([]);
});
