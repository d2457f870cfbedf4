/** What a sandbox gets from a host with keys: answers in which no value is, and connections that prove whose they are. */
import { describe, expect, it } from "vitest";
import { noCertificates } from "../support/certificates.ts";
import { withKeyStand } from "../support/key-stand.ts";

describe.skipIf(noCertificates() !== undefined)("answers of a host with keys", () => {
  it("what a server echoes is masked, in each form and over the borders of pieces", () => {
    const forms = [
      "VALUE",
      "json.dumps({'authorization': 'Bearer ' + VALUE})",
      "'<b>' + html.escape(VALUE) + '</b>'",
      "urllib.parse.quote(VALUE, safe='')",
      ...["", "a", "ab"].map(
        (before) => `base64.b64encode(('${before}' + VALUE + ' and more').encode()).decode()`,
      ),
      "base64.urlsafe_b64encode(('Bearer ' + VALUE).encode()).decode()",
    ];
    expect(
      withKeyStand(`
import html, urllib.parse
leaks = []
for number, text in enumerate([${forms.join(", ")}]):
    for size in (1, 7, 100000):
        async def answer(head, reader, writer):
            writer.write(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
            data = ("before " + text + " after").encode()
            for at in range(0, len(data), size):
                piece = data[at:at + size]
                writer.write(f"{len(piece):x}\\r\\n".encode() + piece + b"\\r\\n")
                await writer.drain()
            writer.write(b"0\\r\\n\\r\\n")
        stand = await Stand().start(answer)
        body = body_of(await stand.ask(get()))
        if not ("[key staging]" in body and body.startswith("before ") and body.endswith(" after")):
            leaks.append([number, size, body])
        if VALUE[4:16] in body or base64.b64encode(VALUE.encode()).decode()[8:24] in body:
            leaks.append([number, size, body])
return leaks
`),
    ).toEqual([]);
  });

  it("an echo in the answer's head is masked, also up to the connection's end", () => {
    expect(
      withKeyStand(`
async def answer(head, reader, writer):
    writer.write(f"HTTP/1.1 401 No {VALUE}\\r\\nWWW-Authenticate: Bearer realm={VALUE}\\r\\nAlt-Svc: h3=':443'\\r\\n\\r\\nof {VALUE}".encode())
    return "end"
stand = await Stand().start(answer)
said = await stand.ask(get())
return [VALUE in said, said.count("[key staging]"), "Alt-Svc" in said, body_of(said), stand.uses()]
`),
    ).toEqual([false, 3, false, "of [key staging]", [["used", 401, "/v1/x"]]]);
  });

  it("an answer that is compressed all the same passes unread, and the event says so", () => {
    expect(
      withKeyStand(`
import gzip
packed = gzip.compress(b"hello")
stand = await Stand().start(answering(packed, "Content-Encoding: gzip"))
said = await stand.ask(get())
return [body_of(said) == packed.decode("latin-1"), stand.session.key_use.report()[0]["unread"]]
`),
    ).toEqual([true, "gzip"]);
  });

  it.each([
    [
      "of another name",
      `context(theirs, "other.test")`,
      "None",
      /does not prove that it is good\.test.*Hostname mismatch/,
    ],
    [
      "of an unknown authority",
      "None",
      `""`,
      /does not prove that it is good\.test.*certificate verify failed/,
    ],
  ])(
    "a server with a certificate %s gets nothing: 502 with the reason",
    (_what, tls, authorities, reason) => {
      const [said, heads, uses] = withKeyStand(`
stand = await Stand().start(answering(b"hello"), tls=${tls}, authorities=${authorities})
try:
    await stand.tunnel()
except ConnectionError as error:
    return [str(error), len(stand.heads), stand.uses()]
`) as unknown[];
      expect(said).toMatch(reason);
      expect(said).toMatch(/^HTTP\/1\.1 502 /);
      expect([heads, uses]).toEqual([0, [["refused", "certificate", ""]]]);
    },
  );

  it.each([
    ["names another server", `shake="other.test"`],
    ["is of a client that does not trust the session's authority", `authority=theirs["authority"]`],
  ])("a TLS connection that %s is closed, and no request reaches a server", (_what, how) => {
    expect(
      withKeyStand(`
stand = await Stand().start(answering(b"hello"))
try:
    reader, writer = await stand.tunnel(${how})
    writer.write(get())
    return await reader.read()
except OSError as error:
    while stand.session.connections:
        await asyncio.sleep(0.01)
    return [len(stand.heads), stand.uses() + [key[2] for key in stand.session.denials]]
`),
    ).toEqual([0, [how.startsWith("shake") ? "server-name-mismatch" : ["refused", "certificate", ""]]]);
  });

  it("another listed host is not decrypted, and its connection cannot name the key's host", () => {
    expect(
      withKeyStand(`
async def answer(head, reader, writer):
    writer.write(b"HTTP/1.1 200 OK\\r\\n\\r\\nhello")
    return "end"
stand = await Stand().start(answer, tls=context(theirs, "other.test"))
reader, writer = await stand.tunnel("other.test", "other.test", theirs["authority"])
writer.write(get("/v1/x", host="good.test"))
said = (await reader.read()).decode()
closed = None
try:
    await stand.tunnel("other.test", "good.test", theirs["authority"])
except OSError as error:
    closed = type(error).__name__
return [VALUE in stand.heads[0], said.split("\\r\\n")[0], closed is not None, [key[2] for key in stand.session.denials], stand.uses()]
`),
    ).toEqual([false, "HTTP/1.1 200 OK", true, ["server-name-mismatch"], []]);
  });

  it("a client that insists on HTTP/2 is refused, and the event says why", () => {
    expect(
      withKeyStand(`
stand = await Stand().start(answering(b"hello"))
reader, writer = await stand.tunnel(alpn=["h2"])
writer.write(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")
said = await reader.read()
return [len(said), len(stand.heads), stand.uses()]
`),
    ).toEqual([0, 0, [["refused", "http2", ""]]]);
  });

  it("a certificate that is too old is refused with the reason, and no connection is made", () => {
    expect(
      withKeyStand(`
stand = await Stand().start(answering(b"hello"))
stand.session.update({**stand.order, "certificate": {**ours, "until": time.time() - 1}})
try:
    await stand.tunnel()
except ConnectionError as error:
    return ["403" in str(error), "too old" in str(error), stand.uses(), len(stand.heads)]
`),
    ).toEqual([true, true, [["refused", "certificate", ""]], 0]);
  });

  it("a new value is used with the next request, also when the server has closed in between", () => {
    expect(
      withKeyStand(`
async def answer(head, reader, writer):
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
    await writer.drain()
    return "end"
stand = await Stand().start(answer)
first = await stand.tunnel()
async def ask(reader, writer):
    writer.write(b"GET /v1/x HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n")
    async with asyncio.timeout(10):
        return (await reader.readuntil(b"0\\r\\n\\r\\n")).decode().split("\\r\\n")[0]
said = [await ask(*first), await ask(*first)]
key = {**stand.order["keys"][0]["keys"][0], "value": "another-value", "text": "Bearer another-value"}
stand.session.update({**stand.order, "keys": [{**stand.order["keys"][0], "keys": [key]}]})
stand.session.rules.is_open = lambda *_: True
said.append(await ask(*await stand.tunnel()))
return [said, ["another-value" in head for head in stand.heads]]
`),
    ).toEqual([Array(3).fill("HTTP/1.1 200 OK"), [false, false, true]]);
  });

  it("npm's way to write a package's name passes, and git's key is for fetching only", () => {
    expect(
      withKeyStand(`
uses = [{"methods": ["GET"], "path": "/acme/*/info/refs", "query": "service=git-upload-pack"}, {"methods": ["POST"], "path": "/acme/*/git-upload-pack"}]
git = await Stand().start(answering(b"hello"), uses=uses)
for path in ["/acme/a.git/info/refs?service=git-upload-pack", "/acme/a.git/info/refs?service=git-receive-pack", "/other/a.git/info/refs?service=git-upload-pack"]:
    await git.ask(get(path))
for path in ["/acme/a.git/git-upload-pack", "/acme/a.git/git-receive-pack"]:
    await git.ask(get(path, "Content-Length: 0", method="POST"))
npm = await Stand().start(answering(b"hello"), uses=[{"methods": ["GET"], "path": "/**"}])
await npm.ask(get("/@acme%2flib"))
return [VALUE in head for head in git.heads + npm.heads]
`),
    ).toEqual([true, false, false, true, false, true]);
  });

  it("a long upload and download pass whole, and hold little memory", () => {
    expect(
      withKeyStand(`
import hashlib, resource
SIZE, piece = 100 * 2**20, os.urandom(2**20)
async def answer(head, reader, writer):
    left = SIZE
    while left:
        left -= len(await reader.read(min(left, 65536)))
    writer.write(f"HTTP/1.1 200 OK\\r\\nContent-Length: {SIZE}\\r\\n\\r\\n".encode())
    for _ in range(100):
        writer.write(piece)
        await writer.drain()
stand = await Stand().start(answer)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reader, writer = await stand.tunnel()
writer.write(get("/v1/x", f"Content-Length: {SIZE}", method="POST"))
for _ in range(100):
    writer.write(piece)
    await writer.drain()
got = 0
while data := await reader.read(2**16):
    got += len(data)
return [got > SIZE, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 40_000]
`),
    ).toEqual([true, true]);
  }, 120_000);

  it("a long upload in chunks arrives whole, and holds little memory", () => {
    expect(
      withKeyStand(`
import hashlib, resource
piece, got = os.urandom(2**20), hashlib.sha256()
async def answer(head, reader, writer):
    while size := int(await reader.readuntil(b"\\r\\n"), 16):
        got.update(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\ndone")
stand = await Stand().start(answer)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reader, writer = await stand.tunnel()
writer.write(get("/v1/x", "Transfer-Encoding: chunked", method="POST"))
sent = hashlib.sha256()
for _ in range(100):
    sent.update(piece)
    writer.write(f"{len(piece):x}\\r\\n".encode() + piece + b"\\r\\n")
    await writer.drain()
writer.write(b"0\\r\\n\\r\\n")
said = (await reader.read()).decode()
return [body_of(said), got.hexdigest() == sent.hexdigest(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 40_000]
`),
    ).toEqual(["done", true, true]);
  }, 120_000);

  it("a redirect to another host is the client's to follow: the proxy sends no request there", () => {
    expect(
      withKeyStand(`
async def answer(head, reader, writer):
    writer.write(b"HTTP/1.1 302 Found\\r\\nLocation: https://other.test/v1/x\\r\\nContent-Length: 0\\r\\n\\r\\n")
stand = await Stand().start(answer)
said = await stand.ask(get())
return [said.split("\\r\\n")[0], "Location: https://other.test/v1/x" in said, len(stand.heads)]
`),
    ).toEqual(["HTTP/1.1 302 Found", true, 1]);
  });

  it("what a websocket echoes is masked, in one frame, in many, and in one that ends it", () => {
    expect(
      withKeyStand(`
from egress.websocket import frame, frame_head
async def answer(head, reader, writer):
    writer.write(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n")
    text = ("before " + VALUE + " after").encode()
    writer.write(frame(0x81, text))
    for at, byte in enumerate(text):
        writer.write(frame((1 if at == 0 else 0) | (0x80 if at == len(text) - 1 else 0), bytes([byte])))
    writer.write(frame(0x82, bytes(200_000)) + frame(0x88, b"\\x03\\xe8" + VALUE.encode()))
    await writer.drain()
    got.append(await reader.readexactly(6))
    return "end"
got = []
stand = await Stand().start(answer)
reader, writer = await stand.tunnel()
writer.write(b"GET /v1/ws HTTP/1.1\\r\\nHost: good.test\\r\\nUpgrade: websocket\\r\\nConnection: keep-alive, Upgrade\\r\\nSec-WebSocket-Extensions: permessage-deflate\\r\\n\\r\\n")
said = await reader.readuntil(b"\\r\\n\\r\\n")
messages, message = [], b""
while True:
    first, length = await frame_head(reader)
    data = await reader.readexactly(length)
    message = data if first & 8 else message + data
    if first & 0x80:
        messages.append(message)
        message = b""
    if first == 0x88:
        break
writer.write(b"\\x81\\x80abcd")
while await reader.read():
    pass
return [
    b" 101 " in said, "permessage-deflate" in stand.heads[0], VALUE in stand.heads[0], got[0].hex(),
    [text.decode() for text in messages[:2]], len(messages[2]), messages[3][2:].decode(), stand.uses(),
]
`),
    ).toEqual([
      true,
      false,
      true,
      "818061626364",
      ["before [key staging] after", "before [key staging] after"],
      200_000,
      "[key staging]",
      [["used", 101, "/v1/ws"]],
    ]);
  });

  it("128 connections at once are answered, and a client that reads slowly holds up nobody", () => {
    expect(
      withKeyStand(`
async def answer(head, reader, writer):
    size = 2**24 if "/v1/slow" in head else 5
    writer.write(f"HTTP/1.1 200 OK\\r\\nContent-Length: {size}\\r\\n\\r\\n".encode())
    while size > 0:
        writer.write(b"hello"[:size] if size < 2**16 else bytes(2**16))
        size -= 2**16
        await writer.drain()
stand = await Stand().start(answer)
slow = await stand.tunnel()
slow[1].write(get("/v1/slow"))
await slow[0].read(1)
answers = await asyncio.gather(*(stand.ask(get()) for _ in range(127)))
return [sum(body_of(text) == "hello" for text in answers), stand.uses()[0][:2]]
`),
    ).toEqual([127, ["used", 200]]);
  }, 60_000);
});
