/** A stand for the part of the egress proxy that adds keys: its own program, and real TLS on both sides. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The folder of the package `egress`. */
const PACKAGES = fileURLToPath(new URL("../../activities/sandbox", import.meta.url));
/** The key's value. */
export const VALUE = "s3cr3t-token+of/acme_0123456789";

const STAND = `
import asyncio, base64, json, os, socket, ssl, sys, tempfile, time
sys.path.insert(0, ${JSON.stringify(PACKAGES)})
from egress import certificates
from egress.proxy import Proxy, Session

VALUE = ${JSON.stringify(VALUE)}
certificates.FOLDER = tempfile.mkdtemp()
names = ["good.test", "other.test"]
ours, theirs = certificates.make(names[:1]), certificates.make(names)
USES = [{"methods": ["GET", "POST"], "path": "/v1/**"}]

def context(made, name):
    made_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = os.path.join(certificates.FOLDER, "both.pem")
    with open(file, "w") as out:
        out.write(made["hosts"][name])
    made_context.load_cert_chain(file)
    return made_context

class Stand:
    """An origin for good.test, the proxy, and a session's socket."""
    def __init__(self):
        self.heads = []
    async def start(self, answer, uses=USES, tls=None, authorities=None):
        async def serve(reader, writer):
            try:
                while True:
                    head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode()
                    self.heads.append(head)
                    if await answer(head, reader, writer) == "end":
                        break
            except (OSError, EOFError):
                pass
            finally:
                writer.close()
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls or context(theirs, "good.test"))
        self.port = server.sockets[0].getsockname()[1]
        socket.getaddrinfo = lambda name, port, type: [(0, 0, 0, "", ("127.0.0.1", port))]
        self.proxy = Proxy()
        key = {"name": "staging", "value": VALUE, "header": "Authorization", "text": "Bearer " + VALUE, "uses": uses}
        trusted = theirs["authority"] if authorities is None else authorities
        self.order = {
            "id": "s", "token": "t", "domains": ["good.test", "other.test"], "registries": [],
            "named": [], "protected": [], "allowed": [], "special": [],
            "certificate": ours,
            "keys": [{"host": "good.test", "port": self.port, "keys": [key], "authorities": trusted}],
        }
        self.session = Session(self.order)
        self.session.rules.is_open = lambda *_: True
        self.path = tempfile.mktemp()
        self.session.open(self.proxy, self.path)
        return self
    async def tunnel(self, name="good.test", shake="good.test", authority=None, alpn=None):
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write(f"CONNECT {name}:{self.port} HTTP/1.1\\r\\n\\r\\n".encode())
        said = (await reader.readuntil(b"\\r\\n\\r\\n")).decode()
        if " 200 " not in said:
            raise ConnectionError(said.split("\\r\\n")[0] + " " + (await reader.read()).decode())
        trust = ssl.create_default_context(cadata=authority or ours["authority"])
        trust.set_alpn_protocols(alpn or ["http/1.1"])
        await writer.start_tls(trust, server_hostname=shake)
        return reader, writer
    async def ask(self, request):
        """One request of its own connection. @returns the whole answer"""
        reader, writer = await self.tunnel()
        writer.write(request)
        return (await reader.read()).decode("latin-1")
    def uses(self):
        return [[use["what"], use.get("reason") or use.get("status"), use["path"]] for use in self.session.key_use.report()]

def get(path="/v1/x", *fields, method="GET", host="good.test"):
    return "\\r\\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *fields, "", ""]).encode()

def answering(body, *fields, status="200 OK"):
    async def answer(head, reader, writer):
        text = body(head) if callable(body) else body
        writer.write("\\r\\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(text)}", *fields, "", ""]).encode() + text)
        await writer.drain()
    return answer

def body_of(answer):
    """Of an answer in chunks."""
    head, _, rest = answer.partition("\\r\\n\\r\\n")
    if "transfer-encoding" not in head.lower():
        return rest
    text = ""
    while True:
        size, _, rest = rest.partition("\\r\\n")
        if not size or int(size, 16) == 0:
            return text
        text, rest = text + rest[:int(size, 16)], rest[int(size, 16) + 2:]
`.replaceAll("\\\\", "\\");

/**
 * Runs the body of an async function next to `Stand`, `get` and `answering`.
 * @returns what it returned, through JSON
 */
export function withKeyStand(body: string): unknown {
  const lines = body
    .trim()
    .split("\n")
    .map((line) => `    ${line}`);
  const program = `${STAND}\nasync def test():\n${lines.join("\n")}\nprint(json.dumps(asyncio.run(test())))\n`;
  const output = execFileSync("python3", ["-I", "-B", "-c", program], {
    encoding: "utf8",
    timeout: 60_000,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return JSON.parse(output);
}
