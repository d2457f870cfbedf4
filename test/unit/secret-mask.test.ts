import { describe, expect, it } from "vitest";
import { createMasker, MASK } from "../../activities/redaction/secret-mask.ts";

const SECRET = "s3cret/Value+with=odd chars~42";
const TOKEN = `ghp_${"a1B2".repeat(9)}`;

function base32(bytes: Buffer): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{5}/g) ?? []).map((five) => alphabet.charAt(Number.parseInt(five, 2))).join("");
}

describe("createMasker", () => {
  const masker = createMasker([SECRET, "short"]);
  const bytes = Buffer.from(SECRET);

  it.each([
    ["the value itself", SECRET],
    ["URL-encoded", encodeURIComponent(SECRET)],
    ["URL-encoded in lower case", encodeURIComponent(SECRET).replace(/%../g, (part) => part.toLowerCase())],
    ["as a form field", encodeURIComponent(SECRET).replaceAll("%20", "+")],
    ["hex", bytes.toString("hex")],
    ["hex in upper case", bytes.toString("hex").toUpperCase()],
  ])("masks a secret written as %s", (_form, written) => {
    expect(masker.mask(`<${written}>`)).toBe(`<${MASK}>`);
  });

  it.each([0, 1, 2, 3, 4])("masks a secret's base64 after %i other bytes, in both alphabets", (before) => {
    for (const alphabet of ["base64", "base64url"] as const) {
      const encoded = Buffer.concat([Buffer.alloc(before, 120), bytes, Buffer.from("tail")]).toString(
        alphabet,
      );
      expect(masker.mask(encoded)).toContain(MASK);
      expect(masker.mask(encoded).length).toBeLessThan(MASK.length + 16);
    }
  });

  it("masks base64 that was wrapped into lines", () => {
    const encoded = (bytes.toString("base64").match(/.{1,12}/g) ?? []).join("\n");
    expect(masker.mask(encoded)).toContain(MASK);
    expect(masker.mask(encoded).length).toBeLessThan(14);
  });

  it("masks well-known tokens that are not configured, and not words that look like them", () => {
    expect(masker.mask(`token: ${TOKEN}.`)).toBe(`token: ${MASK}.`);
    expect(masker.mask("OPENAI=sk-proj-abcdefghij0123456789_x")).toBe(`OPENAI=${MASK}`);
    for (const words of [
      "task-force-of-many-words-in-a-row",
      "sk-toggleable__content",
      "desk-1",
      "npm_config_registry",
    ]) {
      expect(masker.mask(words)).toBe(words);
    }
  });

  const spaced = (gap: string) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(gap);
  const escapes = (prefix: string) => Array.from(bytes, (byte) => prefix + byte.toString(16)).join("");
  const twice = (text: string) => Buffer.from(text).toString("base64");
  it.each([
    ["hex with blanks", spaced(" ")],
    ["hex with colons", spaced(":")],
    ["hex in groups of four", spaced("").replace(/.{4}/g, "$& ").trim()],
    ["a list of bytes", spaced(", 0x")],
    ["hex in lines", spaced("").replace(/.{20}/g, "$&\n")],
    ["\\x escapes", escapes(String.raw`\x`)],
    [
      "\\x escapes in upper case",
      escapes(String.raw`\x`)
        .toUpperCase()
        .replaceAll("X", "x"),
    ],
    ["\\u escapes", escapes(String.raw`\u00`)],
    ["a URL with every character encoded", escapes("%")],
    ["JSON with escaped slashes", SECRET.replaceAll("/", String.raw`\/`)],
    [
      "JSON within JSON within JSON",
      SECRET.replaceAll("/", String.raw`\\\/`).replaceAll("=", String.raw`\\u003d`),
    ],
    ["HTML, a form and a URL", SECRET.replaceAll(" ", "+").replaceAll("/", "%2F").replaceAll("=", "\\x3d")],
    ["lines", SECRET.replace(/.{11}/g, "$&\n")],
    ["text with invisible characters inside", Array.from(SECRET).join("\u200b")],
    ["text in two bytes a character", Array.from(SECRET).join("\u2400")],
    ["its characters in reverse", Array.from(SECRET).toReversed().join("")],
  ])("masks a secret written as %s", (_form, written) => {
    const shown = masker.mask(`<${written}>`);
    expect(shown).toContain(MASK);
    expect(shown.length).toBeLessThan(MASK.length + 6);
  });

  it.each([
    ["é", String.raw`p\u00e4ssw\u00f6rd-\u00e9t\u00e9`],
    ["its JSON, encoded again", String.raw`p\\u00e4ssw\\u00f6rd-\\u00e9t\\u00e9`],
    ["Python's bytes", String.raw`p\xc3\xa4ssw\xc3\xb6rd-\xc3\xa9t\xc3\xa9`],
    ["Python's text", String.raw`p\xe4ssw\xf6rd-\xe9t\xe9`],
    ["a URL", encodeURIComponent("pässwörd-été")],
  ])("masks letters beyond ASCII in the escapes of %s", (_form, written) => {
    expect(createMasker(["pässwörd-été"]).mask(`<${written}>`)).toBe(`<${MASK}>`);
  });

  it("masks quotes, backslashes and line ends of a secret escaped any number of times", () => {
    const odd = 'a"b\\c\nd\te/f&g';
    let written = odd;
    for (let level = 0; level < 4; level += 1) {
      expect(createMasker([odd]).mask(`<${written}>`)).toBe(`<${MASK}>`);
      written = JSON.stringify(written).slice(1, -1);
    }
  });

  it.each([0, 1, 2, 3, 4])("masks a secret's base32 after %i other bytes", (before) => {
    const encoded = base32(Buffer.concat([Buffer.alloc(before, 120), bytes, Buffer.from("tail!")]));
    for (const written of [encoded, encoded.toLowerCase(), encoded.replace(/.{10}/g, "$&\n")]) {
      expect(masker.mask(written)).toContain(MASK);
      expect(masker.mask(written).length).toBeLessThan(MASK.length + 20);
    }
  });

  it.each([0, 1, 2])("masks base64 of base64, after %i other bytes", (before) => {
    const inner = Buffer.concat([Buffer.alloc(before, 120), bytes, Buffer.from("tail")]).toString("base64");
    for (const front of ["", "a", "ab"]) {
      const shown = masker.mask(twice(front + inner));
      expect(shown).toContain(MASK);
      expect(shown.length).toBeLessThan(MASK.length + 24);
    }
  });

  it("masks base64 that was encoded line by line", () => {
    const long = `sk_${"Ab3-".repeat(40)}`;
    const lines = Buffer.from(long).toString("base64").replace(/.{76}/g, "$&\n");
    expect(createMasker([long]).mask(twice(lines)).length).toBeLessThan(20);
  });

  it("masks base64 in JSON, with its line ends and slashes escaped", () => {
    const odd = "??>>???>>>~~~";
    const encoded = Buffer.from(odd).toString("base64");
    expect(encoded).toContain("/");
    const written = JSON.stringify(encoded.replace(/.{6}/g, "$&\n")).replaceAll("/", String.raw`\/`);
    expect(createMasker([odd]).mask(written).length).toBeLessThan(MASK.length + 8);
  });

  const body = Buffer.alloc(120, "key").toString("base64");
  it.each([
    [
      "a private key",
      `-----BEGIN RSA PRIVATE KEY-----\n${body.replace(/.{64}/g, "$&\n")}\n`,
      "-----END RSA PRIVATE KEY-----",
    ],
    ["a private key in JSON", `-----BEGIN PRIVATE KEY-----\\n${body}\\n`, "-----END PRIVATE KEY-----"],
    ["a JSON web token", `eyJ${"hbGci".repeat(5)}.eyJ${"zdWIi".repeat(9)}.${"Sfl_".repeat(10)}`, " end"],
    ["a Google token", `ya29.${"a0Af-".repeat(8)}`, " end"],
    ["an app-level token", `xapp-${"1-A0".repeat(8)}`, " end"],
    ["an upload token", `pypi-Ag${"EIcHlw_".repeat(9)}`, " end"],
  ])("masks %s", (_name, secret, after) => {
    expect(masker.mask(`see ${secret}${after}`)).toBe(`see ${MASK}${after}`);
  });

  const key = `-----BEGIN RSA PRIVATE KEY-----\n${body.replace(/.{64}/g, "$&\n")}\n-----END RSA PRIVATE KEY-----\n`;
  it.each([
    ["as a patch adds it", "+"],
    ["as a patch removes it", "-"],
    ["as a mail quotes it", "> "],
    ["commented out", "# "],
    ["as grep -n numbers it", "12:"],
    ["indented", "\t  "],
    ["in a comment of several lines", " * "],
    ["in a table", "| "],
  ])("masks a private key %s, whole and in pieces", (_how, mark) => {
    for (const end of ["\n", "\r\n"]) {
      const text = `${key.replaceAll("\n", end).replace(/^(?=.)/gm, mark)}after it.`;
      const shown = masker.mask(text);
      expect(shown).toMatch(/-----END RSA PRIVATE KEY-----\s+after it\.$/);
      expect(shown).not.toContain(body.slice(0, 20));
      expect(shown).not.toContain(body.slice(70, 90));
      for (let cut = 1; cut < text.length; cut += 1) {
        const stream = masker.stream();
        const pieces = [stream.push(text.slice(0, cut)), stream.push(text.slice(cut)), stream.end()];
        expect(pieces.join("")).toBe(shown);
      }
    }
  });

  it("masks a private key with a cipher's header, and single lines of a known one", () => {
    const header = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011AA\n\n";
    expect(masker.mask(key.replace("\n", `\n${header}`))).toBe(`${MASK}-----END RSA PRIVATE KEY-----\n`);
    for (const known of [key, key.replaceAll("\n", "\\n")])
      expect(createMasker([known]).mask(`3: ${body.slice(64, 128)} and`)).toBe(`3: ${MASK} and`);
  });

  it.each([
    ["aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "\n"],
    ['"SecretAccessKey": "', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", '"'],
    ["AccountName=a;AccountKey=", `${"Ab3+".repeat(21)}==`, ";EndpointSuffix=b"],
    ["extraheader = AUTHORIZATION: basic ", twice("x-access-token:abcdefgh"), "\n"],
    ['curl -H "Authorization: Bearer ', "abc.DEF-ghi_jkl.0123456789", '"'],
  ])("shows the name and masks the value of %s…", (name, value, after) => {
    expect(masker.mask(`${name}${value}${after}`)).toBe(`${name}${MASK}${after}`);
  });

  it.each([
    "authorization: bearer token of the user",
    "const secretAccessKey = process.env.KEY;",
    "-----BEGIN PRIVATE KEY----- …",
    "eyJhbGciOiJIUzI1NiJ9.not-a-token",
    "https://files.example.org/pypi-Agenda.html",
    "4e 6f 20 73 65 63 72 65 74",
  ])("leaves %s unchanged", (text) => {
    expect(masker.mask(text)).toBe(text);
  });

  it("takes time linear in the text, for any content", () => {
    const many = createMasker([SECRET, "0123456789abcdef".repeat(4), "a".repeat(60), `x${"\\".repeat(30)}y`]);
    const pieces = [
      "a",
      "0",
      "\\",
      "\\x73",
      "%73",
      "eyJ-",
      "-----BEGIN PRIVATE KEY",
      "73 ",
      "\u200b",
      "s3cret\n",
      "authorization: ",
    ];
    for (const piece of pieces) {
      const text = piece.repeat(Math.ceil(100_000 / piece.length));
      const begun = process.cpuUsage().user;
      many.mask(text);
      // Far above the measured time (some ms), far below anything quadratic.
      expect((process.cpuUsage().user - begun) / 1_000, JSON.stringify(piece)).toBeLessThan(1_500);
    }
  });

  it("masks the visible part of a secret that crosses a window's edges", () => {
    const text = `before ${SECRET} after`;
    for (let from = 0; from < text.length; from += 1) {
      const shown = masker.maskWindow(text, from, from + 12);
      for (let part = 0; part + 5 <= SECRET.length; part += 1)
        expect(shown).not.toContain(SECRET.slice(part, part + 5));
    }
    expect(masker.maskWindow(text, 0, 7)).toBe("before ");
    expect(masker.maskWindow(text, 3, 20)).toBe(`ore ${MASK}`);
    expect(masker.maskWindow(text, 20, text.length)).toBe(`${MASK} after`);
  });

  it("leaves values under 8 characters alone", () => {
    expect(masker.mask("a short word")).toBe("a short word");
  });
});
