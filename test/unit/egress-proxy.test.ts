/** The egress proxy's own program, with a sandbox and servers that are not as they should be. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

/** The folder of the package `egress`. */
const PACKAGES = fileURLToPath(new URL("../../activities/sandbox", import.meta.url));

const STAND = `
import asyncio, json, os, socket, struct, sys, tempfile, threading
sys.path.insert(0, ${JSON.stringify(PACKAGES)})
from egress.client_hello import HELLO_RETRY, hello_of
from egress.proxy import MAX_ALL_CONNECTIONS, MAX_CONNECTIONS, OWN_LOOKUPS, Proxy, Session

class Anything:
    """Rules that let every name and address in."""
    def check_name(self, host): return host
    def check_addresses(self, *_): pass
    def is_open(self, *_): return True

def session(name):
    made = Session.__new__(Session)
    made.denials, made.connections, made.id, made.token, made.rules = {}, 0, name, "t", Anything()
    made.lookups, made.path, made.key_hosts = asyncio.Semaphore(OWN_LOOKUPS), None, {}
    return made

async def stand(*names):
    proxy = Proxy()
    proxy.sessions = {name: session(name) for name in names}
    path = {name: tempfile.mktemp() for name in names}
    for name in names:
        proxy.sessions[name].open(proxy, path[name])
    return proxy, path

def hello(name):
    entry = b"\\\\0" + struct.pack(">H", len(name)) + name
    value = struct.pack(">H", len(entry)) + entry
    extension = struct.pack(">HH", 0, len(value)) + value
    body = b"\\\\3\\\\3" + bytes(32) + b"\\\\0" + b"\\\\0\\\\2\\\\x13\\\\1" + b"\\\\1\\\\0" + struct.pack(">H", len(extension)) + extension
    message = b"\\\\1" + struct.pack(">I", len(body))[1:] + body
    return b"\\\\x16\\\\3\\\\1" + struct.pack(">H", len(message)) + message

def server_hello(random):
    body = b"\\\\3\\\\3" + random + b"\\\\0\\\\x13\\\\1\\\\0\\\\0\\\\0"
    message = b"\\\\2" + struct.pack(">I", len(body))[1:] + body
    return b"\\\\x16\\\\3\\\\3" + struct.pack(">H", len(message)) + message
`.replaceAll("\\\\", "\\");

/** Runs the body of an async function; it returns what it printed as JSON. */
function python(body: string): unknown {
  const lines = body
    .trim()
    .split("\n")
    .map((line) => `    ${line}`);
  const program = `${STAND}\nasync def test():\n${lines.join("\n")}\nprint(json.dumps(asyncio.run(test())))\n`;
  return JSON.parse(
    execFileSync("python3", ["-I", "-B", "-c", program], {
      encoding: "utf8",
      timeout: 60_000,
      // Python complains of connections that it ends itself.
      stdio: ["ignore", "pipe", "ignore"],
    }),
  );
}

const TUNNEL = (second: string, early: string) => `
got = []
async def serve(reader, writer):
    await reader.read(65536)
    writer.write(server_hello(HELLO_RETRY))
    got.append((await reader.read(65536)).hex())
    writer.close()
server = await asyncio.start_server(serve, "127.0.0.1", 0)
port = server.sockets[0].getsockname()[1]
proxy, path = await stand("a")
reader, writer = await asyncio.open_unix_connection(path["a"])
writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n".encode())
await reader.readuntil(b"\\r\\n\\r\\n")
proxy.sessions["a"].rules.check_name = None
writer.write(hello(b"127.0.0.1"))
await reader.readexactly(len(server_hello(HELLO_RETRY)))
writer.write(${early} + hello(b"${second}"))
answer = await reader.read(65536)
return [answer.hex(), len(got[0]) if got else 0, [key[2] for key in proxy.sessions["a"].denials]]
`;

it.each([
  ["", `b""`],
  ["behind a change of the cipher", String.raw`b"\x14\3\3\0\1\1"`],
  ["behind early data", String.raw`b"\x17\3\3\0\2ab"`],
])("a second hello that names another server is refused %s", (_where, early) => {
  expect(python(TUNNEL("evil.example", early))).toEqual(["15030300020231", 0, ["server-name-mismatch"]]);
});

it("a second hello sent along with the first reaches no server before the first's answer", () => {
  expect(
    python(
      `
got = []
async def serve(reader, writer):
    got.append((await reader.read(65536)).hex())
    writer.write(server_hello(HELLO_RETRY))
    got.append((await reader.read(65536)).hex())
    writer.close()
server = await asyncio.start_server(serve, "127.0.0.1", 0)
port = server.sockets[0].getsockname()[1]
proxy, path = await stand("a")
reader, writer = await asyncio.open_unix_connection(path["a"])
writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n".encode())
await reader.readuntil(b"\\r\\n\\r\\n")
writer.write(hello(b"127.0.0.1") + hello(b"evil.example"))
while await reader.read(65536):
    pass
return [got[0] == hello(b"127.0.0.1").hex(), "".join(got[1:]), [key[2] for key in proxy.sessions["a"].denials]]
`.replaceAll("\\\\", "\\"),
    ),
  ).toEqual([true, "", ["server-name-mismatch"]]);
});

it("two hellos in one record are none", () => {
  expect(
    python(
      `
one, two = hello(b"127.0.0.1")[5:], hello(b"evil.example")[5:]
try:
    hello_of(b"\\x16\\3\\1" + struct.pack(">H", len(one + two)) + one + two)
    return "read"
except ValueError as error:
    return str(error)
`.replaceAll("\\\\", "\\"),
    ),
  ).toContain("something follows the client hello");
});

it("a second hello for the same server passes", () => {
  const [answer, sent, denials] = python(TUNNEL("127.0.0.1", `b""`)) as [string, number, string[]];
  expect({ answer, denials }).toEqual({ answer: "", denials: [] });
  expect(sent).toBeGreaterThan(100);
});

it.each([
  ["a request line", String.raw`GET http://x/ HTTP/1.1\nX: y\r\nHost: x\r\n\r\n`],
  ["a field", String.raw`GET http://x/ HTTP/1.1\r\nA: b\nHost: y\r\n\r\n`],
  ["a folded field", String.raw`GET http://x/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n`],
  [
    "two equal lengths",
    String.raw`POST http://x/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na`,
  ],
  [
    "a length of chunks",
    String.raw`POST http://x/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ],
  ["a zero byte", String.raw`GET http://x/\0 HTTP/1.1\r\n\r\n`],
])("%s that only some parsers read alike is refused", (_what, request) => {
  expect(
    python(`
proxy, path = await stand("a")
reader, writer = await asyncio.open_unix_connection(path["a"])
writer.write(b"${request}")
return (await reader.read(65536)).decode().splitlines()[:2]
`),
  ).toEqual(["HTTP/1.1 400 Bad Request", "x-proxy-error: malformed-request"]);
});

it.each([
  ["a chunk's size", String.raw`3\n\r\nabc\r\n0\r\n\r\n`],
  ["what follows a chunk", String.raw`3\r\nabcXX0\r\n\r\n`],
  ["a chunk's extension", String.raw`3;a=b\r\nabc\r\n0\r\n\r\n`],
  ["a trailer", String.raw`0\r\nA: b\nGET /2 HTTP/1.1\r\n\r\n`],
])("%s of another form ends the request before its end", (_what, body) => {
  expect(
    python(`
got = []
async def serve(reader, writer):
    while piece := await reader.read(65536):
        got.append(piece)
    writer.close()
server = await asyncio.start_server(serve, "127.0.0.1", 0)
port = server.sockets[0].getsockname()[1]
_, path = await stand("a")
reader, writer = await asyncio.open_unix_connection(path["a"])
writer.write(f"POST http://127.0.0.1:{port}/ HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n".encode() + b"${body}")
await reader.read(65536)
text = b"".join(got).decode()
return ["0\\r\\n\\r\\n" in text, "GET /2" in text]
`),
  ).toEqual([false, false]);
});

it("a session with few connections is served when all have as many as the proxy takes", () => {
  expect(
    python(`
proxy, path = await stand("b")
proxy.connections += MAX_ALL_CONNECTIONS
reader, writer = await asyncio.open_unix_connection(path["b"])
writer.write(b"nonsense\\r\\n\\r\\n")
return (await reader.read(65536)).decode().splitlines()[0]
`),
  ).toBe("HTTP/1.1 400 Bad Request");
});

it("look-ups that nobody answers hold up only the session whose names they are", () => {
  expect(
    python(`
silent = threading.Event()
known = socket.getaddrinfo
def slow(name, *rest, **more):
    if name.endswith("silent.test"):
        silent.wait(30)
    return known("127.0.0.1", *rest, **more)
socket.getaddrinfo = slow
async def serve(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
    writer.close()
server = await asyncio.start_server(serve, "127.0.0.1", 0)
port = server.sockets[0].getsockname()[1]
proxy, path = await stand("a", "b")
waiting = []
for number in range(100):
    reader, writer = await asyncio.open_unix_connection(path["a"])
    writer.write(f"GET http://{number}.silent.test/ HTTP/1.1\\r\\n\\r\\n".encode())
    waiting.append(writer)
while proxy.sessions["a"].connections < 100:
    await asyncio.sleep(0)
reader, writer = await asyncio.open_unix_connection(path["b"])
writer.write(f"GET http://good.test:{port}/ HTTP/1.1\\r\\n\\r\\n".encode())
async with asyncio.timeout(10):
    answer = await reader.read(65536)
silent.set()
return [answer.decode().splitlines()[0], len(proxy.resolver._threads) <= 1 + OWN_LOOKUPS]
`),
  ).toEqual(["HTTP/1.1 200 OK", true]);
});

it("a session's own socket counts its connections when they come, and ends only those", () => {
  expect(
    python(`
proxy, path = await stand("a", "b")
idle = [await asyncio.open_unix_connection(path["a"]) for _ in range(400)]
told = {(await reader.read(65536)).decode().splitlines()[1] for reader, _ in idle[MAX_CONNECTIONS:]}
reader, writer = await asyncio.open_unix_connection(path["b"])
writer.write(b"nonsense\\r\\n\\r\\n")
answer = (await reader.read(65536)).decode().splitlines()[0]
count = proxy.sessions["a"].connections
proxy.sessions["a"].close()
return [*told, answer, count, os.path.exists(path["a"]), os.path.exists(path["b"])]
`),
  ).toEqual(["x-proxy-error: too-many-connections", "HTTP/1.1 400 Bad Request", 128, false, true]);
});
