/** Which requests get a key from the egress proxy, and which reach no server. */
import { describe, expect, it } from "vitest";
import { noCertificates } from "../support/certificates.ts";
import { VALUE, withKeyStand } from "../support/key-stand.ts";

/** Each row of a table with its own stand, all in one program. @param body of a function of what the row sends; its results follow in the row */
function table(title: string, body: string, rows: readonly (readonly unknown[])[]): void {
  let results: unknown[] | undefined;
  it.each(rows.map((row, index) => [row[0], index] as const))(title, (_what, index) => {
    results ??= withKeyStand(`
async def one(sent):
${body.trim().replaceAll(/^/gm, "    ")}
return [await one(sent) for sent in [${rows.map(([, sent]) => sent).join(",\n")}]]
`) as unknown[];
    expect(results[index]).toEqual(rows[index]?.slice(2));
  });
}

const ASKED_WITHOUT = `
stand = await Stand().start(answering(b"hello"))
answer = await stand.ask(sent)
assert "authorization" not in stand.heads[0].lower() and body_of(answer) == "hello", answer
return stand.uses()[0][1:]`;
const STATUS = `
stand = await Stand().start(answering(b"hello"))
answer = await stand.ask(sent)
return [answer.split("\\r\\n")[0], len(stand.heads), stand.uses()]`;
const BODY = `
got = []
async def answer(head, reader, writer):
    while piece := await reader.read(65536):
        got.append(piece)
stand = await Stand().start(answer)
await stand.ask(get("/v1/x", "Transfer-Encoding: chunked", method="POST") + sent)
text = b"".join(got).decode()
return ["0\\r\\n\\r\\n" in text, "GET /v1/2" in text]`;

describe.skipIf(noCertificates() !== undefined)("requests to a host with keys", () => {
  it("a request for the key's host gets the key in place of the sandbox's own header", () => {
    expect(
      withKeyStand(`
stand = await Stand().start(answering(b"hello"))
answer = await stand.ask(get("/v1/x?a=b", "authorization: Bearer longhaul-key-staging", "AUTHORIZATION: other", "Range: bytes=0-1"))
fields = [line for line in stand.heads[0].lower().split("\\r\\n") if line.startswith(("authorization", "host", "accept-encoding", "range"))]
return [stand.heads[0].split("\\r\\n")[0], sorted(fields), answer.split("\\r\\n")[0], body_of(answer), stand.uses()]
`),
    ).toEqual([
      "GET /v1/x?a=b HTTP/1.1",
      [
        "accept-encoding: identity",
        `authorization: bearer ${VALUE}`,
        expect.stringMatching(/^host: good\.test:\d+$/),
      ],
      "HTTP/1.1 200 OK",
      "hello",
      [["used", 200, "/v1/x"]],
    ]);
  });

  table("a request with %s goes on without the key", ASKED_WITHOUT, [
    ["another method", `get("/v1/x", method="DELETE")`, "method", "/v1/x"],
    ["another path", `get("/v2/x")`, "path", "/v2/x"],
    ["a name that only begins like it", `get("/v1x/y")`, "path", "/v1x/y"],
    ["parameters of a name", `get("/v1;a/x")`, "path", "/v1;a/x"],
  ]);

  table(
    "a request with %s is refused with 400, and reaches no server",
    STATUS,
    [
      ["a name above", `get("/v1/../admin")`],
      ["an encoded name above", `get("/v1/%2e%2E/admin")`],
      ["one that is encoded twice", `get("/v1/%252e%252e/admin")`],
      ["a name above with parameters", `get("/v1/..;a=b/admin")`],
      ["one with an encoded semicolon", `get("/v1/..%3ba/admin")`],
      ["this name", `get("/v1/./x")`],
      ["an empty name", `get("/v1//admin")`],
      ["an encoded slash", `get("/v1/a%2fadmin")`],
      ["a backslash", `get("/v1/..\\\\admin")`],
      ["an encoded backslash", `get("/v1/..%5cadmin")`],
      ["an encoded zero byte", `get("/v1/x%00")`],
      ["a fragment", `get("/v1/x#/../admin")`],
      ["a letter outside of ASCII", `get("/v1/x").replace(b"/v1/x", b"/v1/\\xe9")`],
      ["a whole address", `get("https://good.test/v1/x")`],
      ["another address", `get("https://other.test/v1/x")`],
      ["no path", `get("*", method="OPTIONS")`],
      ["two hosts", `get("/v1/x", "Host: other.test")`],
      ["no host", `get().replace(b"Host: good.test\\r\\n", b"")`],
      ["two lengths", `get("/v1/x", "Content-Length: 1", "Content-Length: 1", method="POST") + b"a"`],
      [
        "a length and chunks",
        `get("/v1/x", "Content-Length: 5", "Transfer-Encoding: chunked", method="POST") + b"0\\r\\n\\r\\n"`,
      ],
      ["a signed length", `get("/v1/x", "Content-Length: +1", method="POST") + b"a"`],
      [
        "another encoding",
        `get("/v1/x", "Transfer-Encoding: gzip, chunked", method="POST") + b"0\\r\\n\\r\\n"`,
      ],
      ["a bare line feed", `b"GET /v1/x HTTP/1.1\\r\\nHost: good.test\\nX: y\\r\\n\\r\\n"`],
      ["a folded field", `get("/v1/x", "X: y\\r\\n z")`],
      ["a blank before a colon", `get("/v1/x", "Transfer-Encoding : chunked", method="POST")`],
      ["another host for a proxy's server", `get("/v1/x", "X-Forwarded-Host: other.test")`],
      ["the same in the standard's field", `get("/v1/x", "Forwarded: host=other.test")`],
      ["another path in a field", `get("/v1/x", "X-Original-URL: /admin")`],
      ["another path in a field with underscores", `get("/v1/x", "x_rewrite_url: /admin")`],
      ["another method in a field", `get("/v1/x", "X-HTTP-Method-Override: DELETE", method="POST")`],
      ["a version of its own", `get().replace(b"HTTP/1.1", b"HTTP/1.2")`],
    ].map(([what = "", request = ""]) => [what, request, "HTTP/1.1 400 Bad Request", 0, []]),
  );

  table(
    "a request that names %s is refused with 421, and reaches no server",
    STATUS,
    [
      ["another host", `get(host="other.test")`],
      ["the host at another port", `get(host="good.test:1")`],
      ["the host as a part of another", `get(host="good.test.evil.test")`],
    ].map(([what = "", request = ""]) => [
      what,
      request,
      "HTTP/1.1 421 Misdirected Request",
      0,
      [["refused", "host", ""]],
    ]),
  );

  table(
    "a body with %s ends the connection before its end",
    BODY,
    [
      ["extensions of a chunk", String.raw`3;a=b\r\nabc\r\n0\r\n\r\n`],
      ["a bare line feed in a chunk's size", String.raw`3\n\r\nabc\r\n0\r\n\r\n`],
      ["a longer chunk than it says", String.raw`3\r\nabcXX0\r\n\r\n`],
      ["a trailer with a request in it", String.raw`0\r\nA: b\nGET /v1/2 HTTP/1.1\r\n\r\n`],
    ].map(([what = "", body = ""]) => [what, `b"${body}"`, false, false]),
  );

  it("a second request behind a body is one of its own, with its own rules", () => {
    expect(
      withKeyStand(`
stand = await Stand().start(answering(b"hello"))
first = b"POST /v1/x HTTP/1.1\\r\\nHost: good.test\\r\\nContent-Length: 0\\r\\n\\r\\n"
answer = await stand.ask(first + get("/admin"))
return [[head.split("\\r\\n")[0] + (" with" if VALUE in head else " without") for head in stand.heads], answer.count(" 200 OK")]
`),
    ).toEqual([["POST /v1/x HTTP/1.1 with", "GET /admin HTTP/1.1 without"], 2]);
  });

  it("an order whose keys cannot be used changes nothing: its host is not let through", () => {
    expect(
      withKeyStand(`
stand = await Stand().start(answering(b"hello"))
wrong = {**stand.order, "domains": ["good.test", "more.test"], "keys": [{**stand.order["keys"][0], "authorities": "no PEM"}]}
try:
    stand.session.update(wrong)
except (ValueError, OSError):
    pass
allowed = []
for name in ["good.test", "more.test"]:
    try:
        allowed.append(stand.session.rules.check_name(name))
    except Exception as error:
        allowed.append(error.reason)
return [allowed, len(stand.session.key_hosts)]
`),
    ).toEqual([["good.test", "blocked-by-allowlist"], 1]);
  });
});
