/** Pages of servers on this machine, as hostile as they come, read by `web_fetch`. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import type { WebRules } from "../../../activities/web/web-rules.ts";
import { makeCertificates, noCertificates } from "../../support/certificates.ts";
import { callTool, useFakeSandbox } from "../../support/tool-context.ts";
import { BRIDGE, type FakeWeb, PUBLIC_ADDRESS, startWeb, webCallsOf } from "../../support/web.ts";

const sandbox = useFakeSandbox();
const LISTED: WebRules = { network: "listed", names: ["docs.example", "*.docs.example"], allow: [] };

async function serve(
  http: RequestListener,
  https?: Parameters<typeof startWeb>[0]["https"],
): Promise<FakeWeb> {
  const web = await startWeb(https === undefined ? { http } : { http, https });
  onTestFinished(() => web.close());
  return web;
}

const fetching = (web: FakeWeb, input: object, rules: WebRules = BRIDGE, timeoutMs?: number) => {
  const calls = webCallsOf(web, rules);
  return callTool(sandbox, "web_fetch", input, {
    web: { readPage: (url, context) => calls.readPage(url, context, timeoutMs) },
  });
};

const answering =
  (
    body: string | Uint8Array,
    headers: Record<string, string> = { "content-type": "text/html" },
  ): RequestListener =>
  (_request, response) =>
    void response.writeHead(200, headers).end(body);

const redirecting =
  (to: string): RequestListener =>
  ({ url }, response) =>
    url === "/" ? void response.writeHead(302, { location: to }).end() : void response.end("arrived");

/** A call that is refused; and what its server saw of it. */
async function refused(web: FakeWeb, url: string, rules?: WebRules): Promise<string> {
  const { outcome, text } = await fetching(web, { url }, rules);
  expect(outcome).toBe("error");
  expect(text).not.toContain("arrived");
  return text;
}

describe("an address that is not on the public internet is refused", () => {
  it.each([
    ["of a metadata service", "http://169.254.169.254/latest"],
    ["of this machine", "http://127.0.0.1/"],
    ["of this machine in hexadecimal", "http://0x7f.1/"],
    ["of this machine as one number", "http://2130706433/"],
    ["of this machine in octal", "http://0177.0.0.1/"],
    ["of this machine as IPv6", "http://[::1]/"],
    ["that is no address", "http://0.0.0.0/"],
    ["IPv4 mapped to IPv6", "http://[::ffff:127.0.0.1]/"],
    ["IPv4 mapped to IPv6, of a metadata service", "http://[::ffff:a9fe:a9fe]/"],
    ["IPv4 in NAT64's prefix", "http://[64:ff9b::a9fe:a9fe]/"],
    ["IPv4 in 6to4's prefix", "http://[2002:7f00:1::]/"],
    ["IPv4 in the old compatible form", "http://[::7f00:1]/"],
    ["of a private network", "http://10.1.2.3/"],
    ["of a private network of IPv6", "http://[fd00:ec2::254]/"],
    ["of the worker's machine, though public", "http://198.51.99.7/"],
  ])("%s", async (_, url) => {
    const web = await serve(answering("arrived"));
    expect(await refused(web, url)).toContain("not on the public internet");
    expect(web.dialled).toEqual([]);
    const detour = await serve(redirecting(url));
    expect(await refused(detour, "http://site.example/")).toContain("not on the public internet");
    expect(detour.dialled).toEqual([`${PUBLIC_ADDRESS}:80`]);
  });

  it("by its name, also if only one of its addresses is private, and after a redirect", async () => {
    for (const addresses of [
      ["127.0.0.1"],
      [PUBLIC_ADDRESS, "10.0.0.1"],
      ["::ffff:10.0.0.1"],
      ["fe80::1%eth0"],
    ]) {
      const web = await serve(redirecting("http://localhost/x"));
      web.names.set("localhost", [addresses]);
      expect(await refused(web, "http://localhost/x")).toContain("not on the public internet");
      expect(web.dialled).toEqual([]);
      expect(await refused(web, "http://site.example/")).toContain("not on the public internet");
      expect(web.dialled).toEqual([`${PUBLIC_ADDRESS}:80`]);
    }
  });

  it("unless the session opens it: a range does not open this machine or a metadata service", async () => {
    const web = await serve(answering("a mirror", { "content-type": "text/plain" }));
    const open = (...allow: readonly string[]): WebRules => ({ ...BRIDGE, allow });
    expect((await fetching(web, { url: "http://10.1.2.3/" }, open("10.1.0.0/16"))).text).toContain(
      "a mirror",
    );
    expect((await fetching(web, { url: "http://169.254.1.1/" }, open("169.254.1.1"))).text).toContain(
      "a mirror",
    );
    expect(await refused(web, "http://169.254.169.254/", open("0.0.0.0/0"))).toContain("not on the public");
    expect(await refused(web, "http://198.51.99.7/", open("0.0.0.0/0"))).toContain("not on the public");
    expect(await refused(web, "http://127.0.0.1/", open("127.0.0.0/8"))).toContain("not on the public");
  });

  it("a name is looked up once: what it resolves to when the connection is made does not matter", async () => {
    const web = await serve(redirecting("/again"));
    web.names.set("rebinding.example", [[PUBLIC_ADDRESS], ["127.0.0.1"]]);
    expect(await refused(web, "http://rebinding.example/")).toContain("resolves to 127.0.0.1");
    expect(web.lookedUp).toEqual(["rebinding.example", "rebinding.example"]);
    expect(web.dialled).toEqual([`${PUBLIC_ADDRESS}:80`]);
  });
});

describe("the session's network", () => {
  it("none: nothing is looked up", async () => {
    const web = await serve(answering("arrived"));
    expect(await refused(web, "http://site.example/", { ...BRIDGE, network: "none" })).toContain(
      "no network",
    );
    expect(web.lookedUp).toEqual([]);
  });

  it("listed: only its names, also after a redirect", async () => {
    const web = await serve(redirecting("http://other.example/x"));
    expect(await refused(web, "http://other.example/x", LISTED)).toContain("not among the names");
    expect(web.lookedUp).toEqual([]);
    expect(await refused(web, "http://docs.example/", LISTED)).toContain(
      "other.example is not among the names",
    );
    expect(web.lookedUp).toEqual(["docs.example"]);
    for (const host of ["docs.example", "DOCS.example.", "v2.docs.example"])
      expect((await fetching(web, { url: `http://${host}/x` }, LISTED)).text).toContain("arrived");
    for (const host of ["notdocs.example", "docs.example.evil.example"])
      expect(await refused(web, `http://${host}/x`, LISTED)).toContain("not among the names");
  });

  it("listed: an address only if the list or the session's open addresses have it", async () => {
    const web = await serve(answering("a page", { "content-type": "text/plain" }));
    const url = `http://${PUBLIC_ADDRESS}/`;
    expect(await refused(web, url, LISTED)).toContain("not among the names");
    expect((await fetching(web, { url }, { ...LISTED, names: [PUBLIC_ADDRESS] })).text).toContain("a page");
    expect(
      (await fetching(web, { url: "http://10.0.0.5/" }, { ...LISTED, allow: ["10.0.0.0/8"] })).text,
    ).toContain("a page");
  });
});

describe("an address", () => {
  it.each([
    ["with a password", "http://me:secret@site.example/"],
    ["with a user", "http://me@site.example/"],
    ["of another scheme", "file:///etc/passwd"],
    ["that is none", "site"],
  ])("%s is refused before anything is sent, also as a redirect's", async (_, url) => {
    const web = await serve(redirecting(url));
    const text = await refused(web, url);
    expect(text).not.toContain("secret");
    expect(web.lookedUp).toEqual([]);
    if (URL.canParse(url)) expect(await refused(web, "http://site.example/")).not.toContain("secret");
  });

  it("is left after five redirects", async () => {
    const web = await serve(({ url = "" }, response) => {
      const left = Number(url.slice(1));
      if (left === 0) response.end("arrived");
      else response.writeHead(301, { location: `/${left - 1}` }).end();
    });
    expect((await fetching(web, { url: "http://site.example/5" })).text).toContain("arrived");
    expect(await refused(web, "http://site.example/6")).toContain("after 5 redirects");
  });

  it.skipIf(noCertificates())("of https is checked by its name, and does not lead to http", async () => {
    const folder = mkdtempSync(join(tmpdir(), "web-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { ca, cert, key } = makeCertificates(folder);
    const before = tls.getCACertificates();
    tls.setDefaultCACertificates([...before, readFileSync(ca, "utf8")]);
    onTestFinished(() => tls.setDefaultCACertificates(before));
    const web = await serve(answering("arrived"), {
      listener: redirecting("http://localhost/x"),
      key: readFileSync(key, "utf8"),
      cert: readFileSync(cert, "utf8"),
    });
    expect((await fetching(web, { url: "https://localhost/x" })).text).toContain("arrived");
    expect(await refused(web, "https://localhost/")).toContain("redirects from https to http");
    expect(await refused(web, "https://other.example/x")).toMatch(/certificate|altname/i);
    expect(web.dialled).not.toContain(`${PUBLIC_ADDRESS}:80`);
  });

  it("gets no cookies, no credentials and no address of a page before", async () => {
    const seen: (readonly string[])[] = [];
    const web = await serve((request, response) => {
      seen.push(Object.keys(request.headers).toSorted());
      if (request.url === "/") response.writeHead(302, { location: "/x", "set-cookie": "a=b" }).end();
      else response.end("arrived");
    });
    await fetching(web, { url: "http://site.example/" });
    const sent = ["accept", "accept-encoding", "connection", "host", "user-agent"];
    expect(seen).toEqual([sent, sent]);
  });
});

it("goes through the operator's proxy, which is told the checked address", async () => {
  const asked: string[] = [];
  const proxy = createServer(({ url = "", headers }, response) => {
    asked.push(`${url} for ${headers.host}`);
    response.end("arrived");
  });
  await new Promise<void>((resolve) => void proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void proxy.close());
  const web = await serve(() => undefined);
  const { dial: _direct, ...network } = web.network;
  const { port } = proxy.address() as AddressInfo;
  const proxied = { ...web, network: { ...network, proxyFor: () => `http://127.0.0.1:${port}` } };
  expect((await fetching(proxied, { url: "http://site.example/x?y=1" })).text).toContain("arrived");
  expect(asked).toEqual([`http://${PUBLIC_ADDRESS}/x?y=1 for site.example`]);
  web.names.set("inner.example", [["10.0.0.1"]]);
  expect(await refused(proxied, "http://inner.example/")).toContain("not on the public internet");
});

describe("a body", () => {
  it("of 100 MB is not read, whether or not its size is told", async () => {
    let written = 0;
    const piece = Buffer.alloc(1 << 20, "x");
    const endless: RequestListener = (_request, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      const more = () => {
        while (written < 100) {
          written += 1;
          if (!response.write(piece)) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    };
    expect(await refused(await serve(endless), "http://site.example/")).toContain("more than 5 MiB");
    expect(written).toBeLessThan(50);
    const told = await serve((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": String(100 << 20) });
      response.write("begins");
    });
    expect(await refused(told, "http://site.example/")).toContain("more than 5 MiB");
  });

  it("that a little compressed one becomes is not read, nor one that is compressed twice", async () => {
    const bomb = gzipSync(Buffer.alloc(200 << 20));
    expect(bomb.length).toBeLessThan(1 << 20);
    const headers = { "content-type": "text/plain", "content-encoding": "gzip" };
    expect(await refused(await serve(answering(bomb, headers)), "http://site.example/")).toContain(
      "more than 5 MiB",
    );
    const twice = await serve(answering(gzipSync(bomb), { ...headers, "content-encoding": "gzip, gzip" }));
    expect(await refused(twice, "http://site.example/")).toContain("compresses its answer more than once");
    const usual = await serve(answering(gzipSync("plainly"), headers));
    expect((await fetching(usual, { url: "http://site.example/" })).text).toContain("plainly");
  });

  it("that comes byte by byte is left when the time is over", async () => {
    const web = await serve((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      const timer = setInterval(() => response.write("x"), 50);
      response.on("close", () => clearInterval(timer));
    });
    const { outcome, text } = await fetching(web, { url: "http://site.example/" }, BRIDGE, 500);
    expect({ outcome, text }).toMatchObject({
      outcome: "error",
      text: expect.stringContaining("within 0.5 s"),
    });
    const silent = await serve(() => undefined);
    expect((await fetching(silent, { url: "http://site.example/" }, BRIDGE, 200)).text).toContain(
      "within 0.2 s",
    );
  });

  it("ends with the call", async () => {
    const stop = new AbortController();
    const web = await serve((_request, response) => {
      response.write("x");
      stop.abort(new Error("stopped by a person"));
    });
    const calls = webCallsOf(web);
    const call = callTool(
      sandbox,
      "web_fetch",
      { url: "http://site.example/" },
      {
        signal: stop.signal,
        web: { readPage: (url, context) => calls.readPage(url, context) },
      },
    );
    await expect(call).rejects.toThrow("stopped by a person");
  });

  it("of an error is shown as one", async () => {
    const web = await serve(
      (_request, response) => void response.writeHead(404, { "content-type": "text/plain" }).end("not here"),
    );
    const { outcome, text } = await fetching(web, { url: "http://site.example/" });
    expect(outcome).toBe("error");
    expect(text).toMatch(/404 Not Found.*\n.*not here/s);
  });
});
