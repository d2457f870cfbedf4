import { createServer } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isDirect, readProxies, temporalProxy, proxyFor } from "../../activities/process/proxies.ts";
import { readWorkerConfig } from "../../worker/config.ts";
import { patiently } from "../../temporal/patience.ts";
import { hostAndPort, temporalConnection } from "../../temporal/connection.ts";
import { listen } from "../support/listen.ts";

describe("the proxies of the environment", () => {
  it.each([
    [{ HTTPS_PROXY: "proxy.corp:3128" }, { http: "", https: "http://proxy.corp:3128" }],
    [
      { https_proxy: "http://a:1", HTTPS_PROXY: "http://b:2" },
      { http: "", https: "http://a:1" },
    ],
    [{ ALL_PROXY: "a:1" }, { http: "http://a:1", https: "http://a:1" }],
    [
      { all_proxy: "http://a:1", http_proxy: "http://b:2" },
      { http: "http://b:2", https: "http://a:1" },
    ],
    [{ HTTPS_PROXY: "https://me:pw@a:1/" }, { http: "", https: "https://me:pw@a:1/" }],
    [{ HTTPS_PROXY: "[::1]:3128" }, { http: "", https: "http://[::1]:3128" }],
    [{ HTTPS_PROXY: " " }, { http: "", https: "" }],
    [
      { ALL_PROXY: "socks5://a:1", HTTP_PROXY: "b:2", HTTPS_PROXY: "b:2" },
      { http: "http://b:2", https: "http://b:2" },
    ],
  ])("%o are read as curl reads them", (environment, proxies) => {
    expect(readProxies(environment)).toEqual({ ...proxies, none: "" });
  });

  it.each([
    ["HTTPS_PROXY", "socks5://me:secret@a:1", /^HTTPS_PROXY is socks5:\/\/a:1, and only HTTP proxies/],
    ["all_proxy", "socks5h://a:1", /^all_proxy is socks5h:\/\/a:1/],
    ["http_proxy", "http://", /^http_proxy is no address of a proxy/],
    ["HTTP_PROXY", "a b:3128", /^HTTP_PROXY is no address of a proxy/],
    ["HTTP_PROXY", "proxy:99999", /^HTTP_PROXY is no address of a proxy/],
    ["HTTP_PROXY", "http:/proxy:3128", /^HTTP_PROXY is no address of a proxy/],
    ["HTTP_PROXY", "'http://proxy:3128'", /^HTTP_PROXY is no address of a proxy/],
    ["HTTP_PROXY", String.raw`CORP\me:secret@proxy:3128`, /^HTTP_PROXY is no address of a proxy/],
    ["HTTP_PROXY", "http://proxy:3128/proxy.pac", /^HTTP_PROXY is no address of a proxy/],
    ["https_proxy", "http://me:secret%@proxy:1", /^https_proxy is an address whose user or password has a %/],
  ])("%s=%s is refused by its name, without its password", (name, value, words) => {
    expect(() => readProxies({ [name]: value })).toThrow(words);
    expect(() => readProxies({ [name]: value })).not.toThrow(/secret/);
  });

  it("that nothing can use end a worker's start with exit code 4", () => {
    const environment = { DATABASE_URL: "postgres://h/d", HTTPS_PROXY: "socks5://a:1" };
    expect(() => readWorkerConfig(environment)).toThrow(
      expect.objectContaining({
        name: "ServiceMissing",
        message: expect.stringMatching(
          /^The proxy cannot be used: HTTPS_PROXY is socks5.*Set HTTPS_PROXY to http:/,
        ),
      }),
    );
  });
});

it.each([
  ["http://10.1.2.3/v1", "other, 10.0.0.0/8", true],
  ["http://10.1.2.3/v1", "10.1.3.0/24", false],
  ["http://[fd00::5]:8080/v1", "fd00::/8", true],
  ["http://[fd00::5]:8080/v1", "10.0.0.0/8 fe80::/10", false],
  ["http://10.1.2.3/v1", "10.0.0.0/99", false],
  ["http://10.1.2.3/v1", "10.1.2.3/", false],
  ["http://localhost:1/v1", "", true],
  ["https://models.corp/v1", "10.0.0.0/8", false],
])("%s is asked directly with NO_PROXY=%j: %s", (url, none, direct) => {
  expect(isDirect(url, { none })).toBe(direct);
});

describe("the proxy to Temporal", () => {
  const proxied = { https_proxy: "http://me:p%40@proxy:3128" };
  it("is the one that gRPC takes, with its credentials", () => {
    expect(temporalProxy("temporal.corp", proxied)).toEqual({
      targetHost: "proxy:3128",
      basicAuth: { username: "me", password: "p@" },
    });
    expect(temporalProxy("temporal.corp", { grpc_proxy: "one:1", http_proxy: "http://two:2" })).toEqual({
      targetHost: "one:1",
    });
  });

  it.each(["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]", "db.localhost"])(
    "is never used for %s",
    (host) => {
      expect(temporalProxy(host, proxied)).toBeUndefined();
    },
  );

  it.each([
    ["temporal.corp", ".corp"],
    ["temporal.corp", "other, *.corp"],
    ["temporal.corp", "*"],
    ["10.1.2.3", "10.0.0.0/8"],
    ["10.1.2.3", "10.1.2.3"],
  ])("is not used for %s if no_proxy is %s", (host, none) => {
    expect(temporalProxy(host, { ...proxied, no_proxy: none })).toBeUndefined();
  });

  it("is used for what no_proxy does not name", () => {
    expect(temporalProxy("11.1.2.3", { ...proxied, no_proxy: "10.0.0.0/8" })).toBeDefined();
    expect(temporalProxy("a.corp", { ...proxied, no_proxy: "x.corp", no_grpc_proxy: "y" })).toBeDefined();
  });

  it("must be an HTTP proxy", () => {
    expect(() => temporalProxy("temporal.corp", { grpc_proxy: "https://a:1" })).toThrow(
      /^grpc_proxy is https:\/\/a:1, and Temporal can be reached only through a proxy of the form http:/,
    );
  });

  it("is the same for clients and for workers, and neither uses one on this machine", () => {
    vi.stubEnv("grpc_proxy", "http://proxy:3128");
    vi.stubEnv("no_grpc_proxy", "");
    vi.stubEnv("no_proxy", "");
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(temporalConnection("temporal.corp:7233")).toMatchObject({
      connection: { channelArgs: { "grpc.enable_http_proxy": 1 } },
      native: { proxy: { type: "http-connect", targetHost: "proxy:3128" } },
      listenAddress: undefined,
    });
    expect(temporalConnection("127.0.0.1:7233")).toMatchObject({
      connection: { channelArgs: { "grpc.enable_http_proxy": 0 } },
      listenAddress: { host: "127.0.0.1", port: 7233 },
    });
    expect(temporalConnection("127.0.0.1:7233").native).not.toHaveProperty("proxy");
  });
});

it.each([
  ["127.0.0.1:7233", { host: "127.0.0.1", port: 7233 }],
  ["[::1]:7233", { host: "::1", port: 7233 }],
  ["::1", { host: "::1", port: undefined }],
  ["temporal", { host: "temporal", port: undefined }],
  ["https://temporal:1/x", { host: "temporal", port: 1 }],
])("%s has one reading of its host and port", (address, read) => {
  expect(hostAndPort(address)).toEqual(read);
});

describe("waiting for a service", () => {
  it("ends at once where nothing listens", async () => {
    const server = createServer();
    const port = await listen(server);
    await new Promise((done) => server.close(done));
    const opened = vi.fn(async () => "open");
    const waits = { answerMs: 60_000, connectMs: 60_000 };
    await expect(patiently("X", { host: "127.0.0.1", port }, waits, opened)).rejects.toThrow("ECONNREFUSED");
    expect(opened).not.toHaveBeenCalled();
  });

  it("goes on for one that is connected and slow, and says so", async () => {
    const server = createServer();
    const port = await listen(server);
    onTestFinished(() => void server.close());
    const said: string[] = [];
    const opened = Promise.withResolvers<string>();
    const say = (line: string) => {
      said.push(line);
      opened.resolve("open");
    };
    const place = { host: "127.0.0.1", port };
    expect(
      await patiently("Postgres", place, { answerMs: 10_000, connectMs: 60_000, say }, () => opened.promise),
    ).toBe("open");
    expect(said).toEqual(["Postgres is slow to answer; waiting for up to 60 s …"]);
  });
});

describe("the proxy of a connection that we make ourselves", () => {
  const proxies = {
    http: "http://plain:1",
    https: "http://secure:2",
    none: "corp.example, .int.example 10.0.0.0/8",
  };
  const askedOver = (url: string, none = proxies.none) => proxyFor(new URL(url), { ...proxies, none });

  it.each([
    ["http://site.example/", "http://plain:1"],
    ["https://site.example/", "http://secure:2"],
    ["https://notcorp.example/", "http://secure:2"],
    ["https://corp.example/", undefined],
    ["https://a.corp.example/", undefined],
    ["https://a.int.example/", undefined],
    ["https://10.1.2.3/", undefined],
    ["https://localhost/", undefined],
  ])("of %s is %s", (url, proxy) => expect(askedOver(url)).toBe(proxy));

  it("is none for anything if NO_PROXY says so, and if none is set", () => {
    expect(askedOver("https://site.example/", "*")).toBeUndefined();
    expect(proxyFor(new URL("https://site.example/"), { http: "", https: "", none: "" })).toBeUndefined();
  });
});
