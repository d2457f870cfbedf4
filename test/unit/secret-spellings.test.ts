/** Secrets behind generated encoders, alone and one behind the other. */
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMasker, MASK } from "../../activities/redaction/secret-mask.ts";

type Encoder = (text: string, picks: () => boolean) => string;

const utf8 = (char: string): number[] => [...Buffer.from(char)];
const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");
const percent = (char: string): string =>
  utf8(char)
    .map((byte) => `%${hex(byte, 2).toUpperCase()}`)
    .join("");
const unicode = (char: string): string =>
  Array.from({ length: char.length }, (_half, at) => `\\u${hex(char.charCodeAt(at), 4)}`).join("");
const write = (text: string, spell: (char: string) => string): string => Array.from(text, spell).join("");
const NAMES: Readonly<Record<string, string>> = {
  "&": "amp",
  "<": "lt",
  ">": "gt",
  '"': "quot",
  "'": "apos",
  "/": "sol",
  "=": "equals",
  "+": "plus",
  "%": "percnt",
  "\\": "bsol",
  é: "eacute",
};
const code = (char: string): number => char.codePointAt(0) ?? 0;

/** Encoders that write text for text: they may follow each other. */
const TEXT_ENCODERS: Readonly<Record<string, Encoder>> = {
  "the component of a URL": (text) => encodeURIComponent(text),
  "a URL with some characters encoded": (text, picks) =>
    write(text, (char) => (char === "%" || picks() ? percent(char) : char)),
  "a URL in lower case": (text) => write(text, (char) => percent(char).toLowerCase()),
  "a form": (text) => new URLSearchParams({ k: text }).toString().slice(2),
  "HTML with names": (text) => write(text, (char) => (NAMES[char] === undefined ? char : `&${NAMES[char]};`)),
  "HTML with the names that it needs": (text) =>
    write(text, (char) => (/[&<>"]/.test(char) ? `&${NAMES[char]};` : char.replace("'", "&#39;"))),
  "HTML with decimal numbers": (text, picks) =>
    write(text, (char) => (char === "&" || picks() ? `&#${code(char)};` : char)),
  "HTML with hexadecimal numbers": (text, picks) =>
    write(text, (char) => (char === "&" || picks() ? `&#x${hex(code(char), 1)};` : char)),
  "HTML with leading zeros": (text) => write(text, (char) => `&#${String(code(char)).padStart(7, "0")};`),
  JSON: (text) => JSON.stringify(text),
  "JSON in ASCII": (text) =>
    write(JSON.stringify(text), (char) => (code(char) > 0x7e ? unicode(char) : char)),
  "JSON with some characters escaped": (text, picks) =>
    write(text, (char) => (char === "\\" || picks() ? unicode(char) : char)),
  "Python's bytes": (text) =>
    write(text, (char) =>
      utf8(char)
        .map((byte) => `\\x${hex(byte, 2)}`)
        .join(""),
    ),
  "octal escapes": (text) =>
    write(text, (char) =>
      utf8(char)
        .map((byte) => `\\${byte.toString(8).padStart(3, "0")}`)
        .join(""),
    ),
  "code points in braces": (text) => write(text, (char) => `\\u{${hex(code(char), 1)}}`),
  SQL: (text) => `'${text.replaceAll("'", "''")}'`,
  CSV: (text) => `"${text.replaceAll('"', '""')}"`,
  "single quotes of a shell": (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`,
  "single quotes of a shell, with double ones": (text) => `'${text.replaceAll("'", `'"'"'`)}'`,
  "double quotes of a shell": (text) => `"${text.replace(/["$`\\]/g, String.raw`\$&`)}"`,
  "backslashes before everything unusual": (text) => text.replace(/[^A-Za-z0-9_\n-]/gu, String.raw`\$&`),
  "$'…' of a shell": (text) =>
    `$'${write(text, (char) =>
      code(char) > 0x7e
        ? utf8(char)
            .map((byte) => `\\${byte.toString(8)}`)
            .join("")
        : char.replace(/['\\]/, String.raw`\$&`),
    )}'`,
  "quoted-printable": (text) =>
    write(text, (char) =>
      char === "=" || code(char) > 0x7e
        ? utf8(char)
            .map((byte) => `=${hex(byte, 2).toUpperCase()}`)
            .join("")
        : char,
    ),
  PowerShell: (text) => `"${text.replace(/["$`]/g, "`$&")}"`,
};

/** Nobody writes the output of another encoder like this. */
const LONE_ENCODERS: Readonly<Record<string, Encoder>> = {
  "changing quotes of a shell": (text, picks) =>
    write(text, (char) => {
      if (char === "'") return `"'"`;
      const quoted = char.replace(/["$`\\]/, String.raw`\$&`);
      return picks() ? `'${char}'` : `"${quoted}"`;
    }),
};

const SHIFTED = [0, 1, 2].flatMap((before) =>
  (["base64", "base64url"] as const).map((alphabet): [string, Encoder] => [
    `${alphabet} after ${before} bytes`,
    (text) => Buffer.concat([Buffer.alloc(before, 120), Buffer.from(text)]).toString(alphabet),
  ]),
);
/** Encoders that write bytes as other text: what encodes text may follow. */
const BYTE_ENCODERS: Readonly<Record<string, Encoder>> = {
  ...Object.fromEntries(SHIFTED),
  hex: (text) => Buffer.from(text).toString("hex"),
  "HEX with blanks": (text) => (Buffer.from(text).toString("hex").toUpperCase().match(/../g) ?? []).join(" "),
  "octal bytes": (text) => [...Buffer.from(text)].map((byte) => byte.toString(8).padStart(3, "0")).join(" "),
  "UTF-16 in base64": (text) => Buffer.from(text, "utf16le").toString("base64"),
  "a list of bytes": (text) => JSON.stringify([...Buffer.from(text)]),
};

const ENCODERS = { ...TEXT_ENCODERS, ...LONE_ENCODERS, ...BYTE_ENCODERS };

const secrets = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...Array.from("abcXYZ019")) },
      { weight: 3, arbitrary: fc.constantFrom(...Array.from(` %&'"\\$+/=<>;#-_!:?@.,\``)) },
      {
        weight: 1,
        arbitrary: fc.constantFrom("é", "ß", "日", "😀", "''", "\\\\", "%25", "&amp;", "%2F", "\\n"),
      },
    ),
    { minLength: 12, maxLength: 24 },
  )
  // A secret's ends are trimmed, and what stands in front of its first character is none of it.
  .map((parts) => `K${parts.join("")}Z`);

/** What is left of the quotes around a secret, however often they were quoted. */
const QUOTING = /(?:&#39;|&amp;|#39;|&quot;|['"\\])+/g;

/** What may stay beside the mask but quotes: the characters of an encoding that also depend on what stands beside the secret. */
const maxBeside = (written: string): number => Math.max(140, written.length * 0.7);

function check(secret: string, written: string): void {
  const shown = createMasker([secret]).mask(`begin ${written} end`);
  expect(shown, `${JSON.stringify(secret)} as ${written}`).toContain(MASK);
  expect(
    shown.replaceAll(MASK, "").replace(QUOTING, "").length,
    `${JSON.stringify(secret)} as ${written}: ${shown}`,
  ).toBeLessThan(maxBeside(written));
  expect(shown.length).toBeLessThanOrEqual(`begin ${written} end`.length);
}

const texts = fc.constantFrom(...Object.keys(TEXT_ENCODERS));
/** What programs put around others' output. */
const usual = fc.constantFrom(
  "the component of a URL",
  "a form",
  "HTML with the names that it needs",
  "JSON",
  "JSON in ASCII",
  "SQL",
  "single quotes of a shell",
  "double quotes of a shell",
);
const bits = fc.infiniteStream(fc.boolean());

function encode(names: readonly string[], secret: string, random: Iterator<boolean>): string {
  const picks = () => random.next().value === true;
  return names.reduce((text, name) => ENCODERS[name]?.(text, picks) ?? text, secret);
}

describe("a secret", () => {
  it.each(Object.keys(ENCODERS))("is masked in %s", (name) => {
    fc.assert(
      fc.property(secrets, bits, (secret, random) => check(secret, encode([name], secret, random))),
      { numRuns: 60 },
    );
  });

  it("is masked behind two encoders of text, whichever they are", () => {
    fc.assert(
      fc.property(secrets, texts, texts, bits, (secret, first, second, random) =>
        check(secret, encode([first, second], secret, random)),
      ),
      { numRuns: 600 },
    );
  });

  it("is masked behind an encoder of bytes and two of text", () => {
    const bytes = fc.constantFrom(...Object.keys(BYTE_ENCODERS));
    fc.assert(
      fc.property(secrets, bytes, texts, texts, bits, (secret, ...[first, second, third, random]) =>
        check(secret, encode([first, second, third], secret, random)),
      ),
      { numRuns: 600 },
    );
  });

  it("is masked behind four of the encoders that programs put behind each other", () => {
    fc.assert(
      fc.property(secrets, fc.array(usual, { minLength: 4, maxLength: 4 }), bits, (secret, names, random) =>
        check(secret, encode(names, secret, random)),
      ),
      { numRuns: 300 },
    );
  });

  it("is masked behind an encoder of text and one of bytes", () => {
    const bytes = fc.constantFrom(...SHIFTED.map(([name]) => name), "hex");
    fc.assert(
      fc.property(secrets, usual, bytes, bits, (secret, first, second, random) =>
        check(secret, encode([first, second], secret, random)),
      ),
      { numRuns: 400 },
    );
  });

  it("is masked as a shell's own printf %q writes it", () => {
    fc.assert(
      fc.property(secrets, (secret) => {
        check(
          secret,
          execFileSync("bash", ["--norc", "-c", 'printf %q "$1"; printf " %s" "${1@Q}"', "-", secret], {
            encoding: "utf8",
            env: { LC_ALL: "C" },
          }),
        );
      }),
      { numRuns: 20 },
    );
  });

  it("is masked alike when its spelling arrives in pieces", () => {
    fc.assert(
      fc.property(secrets, texts, texts, fc.array(fc.nat(400), { maxLength: 6 }), bits, (secret, ...rest) => {
        const [first, second, cuts, random] = rest;
        const written = `x ${encode([first, second], secret, random)} y`;
        const masker = createMasker([secret]);
        const stream = masker.stream();
        let shown = "";
        let at = 0;
        for (const cut of [...new Set(cuts)].toSorted((a, b) => a - b)) {
          shown += stream.push(written.slice(at, cut));
          at = Math.max(at, cut);
        }
        shown += stream.push(written.slice(at)) + stream.end();
        expect(shown).toBe(masker.mask(written));
      }),
      { numRuns: 400 },
    );
  });
});
