import { createHash, randomBytes } from "node:crypto";
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { program } from "../../activities/sandbox/own-command.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { pythonProgram } from "../support/python-program.ts";
import { gatewayOf } from "../support/bridge-gateway.ts";
import { bash, createTestSandboxes, type TestSandboxes, waitUntil } from "../support/test-sandboxes.ts";

const BYTES = 4 * 2 ** 20;
const payload = randomBytes(BYTES);
let sandboxes: TestSandboxes;
let sandbox: Sandbox;
let secure: Server;
let plain: Server;
let gateway: string;
/** What reached the servers: their Host field and path. */
const visits: string[] = [];

const serve: RequestListener = (request, response) => {
  visits.push(`${request.headers.host} ${request.url}`);
  if (request.url === "/moved") {
    response.writeHead(302, { location: `https://cdn.test:${port(secure)}/` }).end();
  } else if (request.url === "/slow") {
    // In pieces, over two seconds.
    response.writeHead(200, { "content-length": BYTES });
    let sent = 0;
    const timer = setInterval(() => {
      response.write(payload.subarray(sent, sent + BYTES / 20));
      sent += BYTES / 20;
      if (sent < BYTES) return;
      clearInterval(timer);
      response.end();
    }, 100);
  } else if (request.method === "POST") {
    let size = 0;
    request.on("data", (piece: Buffer) => (size += piece.length));
    request.on("end", () => response.end(`${size} bytes`));
  } else response.end("hello");
};

const port = (server: Server): number => (server.address() as AddressInfo).port;
const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
const egress = { name: `longhaul-egress-test-${randomBytes(4).toString("hex")}`, hosts: [] as string[] };
const listed = (domains: readonly string[]) => sandbox.egress?.allow(domains);
const refused = async () => (await sandbox.egress?.refused())?.map(({ host, reason }) => `${host} ${reason}`);
/** curl's status of the tunnel, of the answer, and what the proxy said. */
const curl = async (args: string) =>
  (
    await bash(
      sandbox,
      `curl -sk -m 10 -o /tmp/body -D /tmp/head -w '%{http_connect} %{http_code} ' ${args}; grep -io 'x-proxy-error: [a-z-]*' /tmp/head; rm -f /tmp/head`,
    )
  ).out.trim();

beforeAll(async () => {
  sandboxes = createTestSandboxes(egress);
  gateway = await gatewayOf(sandboxes.docker);
  for (const name of ["good.test", "evil.test", "cdn.test", "a.below.test"])
    egress.hosts.push(`${name}:${gateway}`);
  egress.hosts.push(
    "private.test:10.0.0.5",
    "loop.test:127.0.0.1",
    "both.test:10.0.0.5",
    `both.test:${gateway}`,
  );
  sandbox = await sandboxes.host.open(sandboxes.spec({ network: "listed", allow: [`${gateway}/32`] }));
  const pem = await bash(
    sandbox,
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test -keyout /tmp/key -out /tmp/cert 2>/dev/null; cat /tmp/key /tmp/cert",
  );
  secure = createServer({ key: pem.out, cert: pem.out }, serve);
  plain = createHttpServer(serve);
  await Promise.all([listen(secure), listen(plain)]);
  await listed(["good.test", "*.below.test", "private.test", "loop.test", "both.test"]);
}, 60_000);

afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.host.removeUnused();
  for (const server of [secure, plain]) {
    server.closeAllConnections();
    server.close();
  }
});

test("a listed name can be reached, and nothing else", { tags: ["E1"] }, async () => {
  expect(sandbox.network).toMatchObject({ reach: "listed", reachable: [] });
  expect(await curl(`https://good.test:${port(secure)}/`)).toBe("200 200");
  expect(await curl(`https://GOOD.test.:${port(secure)}/`)).toBe("200 200");
  expect(await curl(`https://a.below.test:${port(secure)}/`)).toBe("200 200");
  expect(await curl(`http://good.test:${port(plain)}/`)).toBe("000 200");
  expect(await curl(`https://evil.test:${port(secure)}/`)).toBe(
    "403 000 x-proxy-error: blocked-by-allowlist",
  );
  expect(await curl(`https://below.test:${port(secure)}/`)).toBe(
    "403 000 x-proxy-error: blocked-by-allowlist",
  );
  expect(await curl("http://1.1.1.1/")).toBe("000 403 x-proxy-error: blocked-by-allowlist");
  const { out: body } = await bash(sandbox, "curl -s http://evil.test/");
  expect(body).toMatch(/longhaul allow test-\w+-\d+ evil\.test/);
  const direct = await bash(
    sandbox,
    `exec 2>&1; (: </dev/tcp/1.1.1.1/80); (: </dev/tcp/${gateway}/${port(plain)}); getent hosts evil.test || echo nothing; ls /sys/class/net`,
  );
  // The shell prints each of them twice.
  expect(direct.out.match(/Network is unreachable/g)).toHaveLength(4);
  expect(direct.out).toMatch(/nothing\nlo\n$/);
  expect(await refused()).toEqual(
    expect.arrayContaining(["evil.test blocked-by-allowlist", "1.1.1.1 blocked-by-allowlist"]),
  );
});

test("without the proxy's image the sandbox is refused for good, and the image is named", async () => {
  const { docker } = sandboxes;
  const spec = sandboxes.spec({ network: "listed" });
  const proxy = { name: `${egress.name}-none`, hosts: [] };
  const host = createDockerHost({
    docker,
    name: "none",
    guardImage: "longhaul-no-such-guard:0",
    egress: proxy,
  });
  await expect(host.open(spec)).rejects.toMatchObject({
    type: "ImageMissing",
    message: expect.stringContaining("needs the image longhaul-no-such-guard:0"),
  });
  await host.remove(spec.sessionId);
  // Its volume was made before the image was asked for.
  await host.removeUnused();
  await host.close();
});

test(
  "a name with one private address among others is refused, and no connection is made",
  { tags: ["E2"] },
  async () => {
    const said = "403 000 x-proxy-error: blocked-private-address";
    expect(await curl("https://private.test/")).toBe(said);
    expect(await curl("https://loop.test/")).toBe(said);
    // The other address is allowed and would answer.
    expect(await curl(`https://both.test:${port(secure)}/`)).toBe(said);
  },
);

test(
  "a name is looked up once, and the connection goes to an address that was checked",
  { tags: ["E2"] },
  async () => {
    const source = `import asyncio, socket
from egress.decision import Refused
from egress.proxy import Proxy, Session
answers = iter([["93.184.216.34"], ["10.0.0.5"]])
connected = []

async def check():
    def getaddrinfo(name, port, type):
        return [(0, 0, 0, "", (address, port)) for address in next(answers)]
    async def open_connection(address, port, limit):
        connected.append(address)
    socket.getaddrinfo = getaddrinfo
    asyncio.open_connection = open_connection
    order = dict(domains=["good.test"], named=[], protected=[], allowed=[], registries=[], special=["10.0.0.0/8"], id="s", token="t")
    for _ in range(2):
        try:
            await Proxy().connect(Session(order), "good.test", 443)
        except Refused as refused:
            print(refused.reason, connected)

asyncio.new_event_loop().run_until_complete(check())
`;
    const id = "resolve";
    await sandbox.run({ id, ...program("LONGHAUL_TEST", pythonProgram(source)) });
    const said = Buffer.from(await sandbox.read(id, "out", 0, 10_000)).toString();
    expect(said).toBe("blocked-private-address ['93.184.216.34']\n");
  },
);

test("a tunnel carries only TLS or plain HTTP for its own name", async () => {
  await refused();
  const tunnel = (script: string) =>
    bash(
      sandbox,
      `python3 - <<'X'
import socket, ssl
peer = socket.create_connection(("127.0.0.1", 3128), 10)
def tunnel(port):
    peer.sendall(f"CONNECT good.test:{port} HTTP/1.1\\r\\n\\r\\n".encode())
    assert b" 200 " in peer.recv(4096)
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
try:
${script.replaceAll(/^/gm, "    ")}
except OSError as error:
    print(type(error).__name__, getattr(error, "reason", ""))
X`,
    ).then(({ out, err }) => out + err);
  const shake = (name: string) =>
    `tunnel(${port(secure)})\ncontext.wrap_socket(peer, server_hostname=${name})\nprint("shaken")`;
  expect(await tunnel(shake("'good.test'"))).toBe("shaken\n");
  expect(await tunnel(shake("'evil.test'"))).toMatch(/ALERT_ACCESS_DENIED/);
  expect(await tunnel(shake("None"))).toMatch(/ALERT_ACCESS_DENIED/);
  const before = visits.length;
  const plainly = (host: string) =>
    `tunnel(${port(plain)})\npeer.sendall(b"GET /plain HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\nGET /second HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n")
said = b""
while data := peer.recv(4096):
    said += data
print(said.count(b" 200 OK"))`;
  expect(await tunnel(plainly("evil.test"))).toBe("1\n");
  // The server gets the tunnel's host whatever the request named, and only one request.
  expect(visits.slice(before)).toEqual([`good.test:${port(plain)} /plain`]);
  expect(
    await tunnel(`tunnel(${port(secure)})\npeer.sendall(b"SSH-2.0-x\\r\\n")\nprint(len(peer.recv(99)))`),
  ).toBe("7\n");
  expect((await refused())?.toSorted()).toEqual([
    "good.test no-server-name",
    "good.test not-tls",
    "good.test server-name-mismatch",
  ]);
});

test(
  "a redirect to a name that is not listed is refused, and reported once a minute",
  { tags: ["E5", "E6"] },
  async () => {
    await refused();
    const at = `https://good.test:${port(secure)}/moved`;
    for (let again = 0; again < 3; again++)
      expect(await curl(`-L ${at}`)).toBe("403 000 x-proxy-error: blocked-by-allowlist");
    const refusals = await sandbox.egress?.refused();
    expect(refusals).toEqual([
      { host: "cdn.test", port: port(secure), reason: "blocked-by-allowlist", count: 3 },
    ]);
    await curl(`-L ${at}`);
    expect(await refused()).toEqual([]);
    await listed(["good.test", "cdn.test"]);
    expect(await curl(`-L ${at}`)).toBe("200 200");
  },
);

test("bodies arrive complete, in both encodings", async () => {
  for (const how of ["--data-binary @/tmp/big", "-H 'Transfer-Encoding: chunked' -T /tmp/big -X POST"]) {
    const { out } = await bash(
      sandbox,
      `head -c 300000 /dev/zero > /tmp/big; curl -s ${how} http://good.test:${port(plain)}/`,
    );
    expect(out).toBe("300000 bytes");
  }
});

test(
  "a download outlives the worker, and a proxy that died is restarted by the next call",
  { tags: ["E4"] },
  async () => {
    const other = sandboxes.newHost();
    const spec = sandboxes.spec({ network: "listed", allow: [`${gateway}/32`] });
    const first = await other.open(spec);
    await first.egress?.allow(["good.test"]);
    const fetching = `curl -sk https://good.test:${port(secure)}/slow | sha256sum`;
    const before = visits.length;
    await first.start({ id: "download", argv: ["bash", "-c", fetching] });
    await waitUntil(
      () => visits.slice(before).includes(`good.test:${port(secure)} /slow`),
      "the request arrives",
    );
    await other.close();
    const again = await sandboxes.host.open(spec);
    await again.wait("download");
    const said = Buffer.from(await again.read("download", "out", 0, 100)).toString();
    expect(said).toContain(createHash("sha256").update(payload.subarray(0, BYTES)).digest("hex"));

    await sandboxes.docker.getContainer(egress.name).kill();
    const dead = await bash(again, `curl -s http://good.test:${port(plain)}/`);
    expect(dead.out).toContain("egress proxy is not running");
    await again.egress?.allow(["good.test"]);
    expect((await bash(again, `curl -s http://good.test:${port(plain)}/`)).out).toBe("hello");
  },
);

test("a sandbox cannot pose as another one", async () => {
  const stranger = await sandboxes.host.open(sandboxes.spec({ network: "listed", allow: [`${gateway}/32`] }));
  await stranger.egress?.allow([]);
  const { out } = await bash(stranger, "env; ls -a /run/longhaul");
  // Sockets have their tokens' names, which no tool reads.
  expect(out).not.toContain(".sock");
  expect(out).not.toMatch(/[0-9a-f]{32}/);
  expect(out).not.toContain("LONGHAUL_EGRESS");
  const { err } = await bash(
    stranger,
    "ls /run/longhaul; touch /run/longhaul/x; cat /proc/1/environ /proc/*/environ >/dev/null",
  );
  expect(err).toContain("cannot open directory '/run/longhaul': Permission denied");
  expect(err).toMatch(/x'?: (Read-only file system|Permission denied)/);
});

test("git uses https, and the proxy is removed when no sandbox uses it", async () => {
  const { out } = await bash(
    sandbox,
    "git ls-remote --get-url git@github.com:a/b; git ls-remote --get-url ssh://git@x.test/c",
  );
  expect(out).toBe("https://github.com/a/b\nhttps://x.test/c\n");
  // Other lines are about leftovers of other test files.
  expect(await sandboxes.host.removeUnused()).not.toContainEqual(expect.stringContaining("egress"));
});
