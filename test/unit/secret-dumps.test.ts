/** Secrets in dumps, which write them over several rows: nothing of a row tells one secret from another. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { createMasker, MASK } from "../../activities/redaction/secret-mask.ts";

type Dump = (bytes: Buffer) => string;

interface Layout {
  readonly size: number;
  /** What a row writes for its bytes, in groups that stand `apart`. */
  readonly groups: (row: Buffer) => readonly string[];
  readonly apart?: string;
  readonly offset: (at: number) => string;
  /** After the groups: the characters, if the tool writes them. */
  readonly column?: (characters: string) => string;
}

const padded = (value: number, radix: number, digits: number) => value.toString(radix).padStart(digits, "0");
const mapped = (row: Buffer, write: (byte: number) => string) => Array.from(row, write);
const characters = (row: Buffer) =>
  mapped(row, (byte) => (byte < 0x20 || byte > 0x7e ? "." : String.fromCharCode(byte))).join("");

function layout({ size, groups, apart = " ", offset, column }: Layout): Dump {
  return (bytes) => {
    const rows = Array.from({ length: Math.ceil(bytes.length / size) }, (_row, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    const width = groups(Buffer.alloc(size)).join(apart).length;
    const lines = rows.map((row, at) => {
      const data = groups(row).join(apart);
      const shown = column === undefined ? data : data.padEnd(width) + column(characters(row));
      return `${offset(at * size)}${shown}`;
    });
    return `${lines.join("\n")}\n`;
  };
}

const hex = (row: Buffer) => mapped(row, (byte) => padded(byte, 16, 2));
const grouped = (row: Buffer, bytes: number) =>
  row.toString("hex").match(new RegExp(`.{1,${2 * bytes}}`, "g")) ?? [];
/** Little-endian; the last word is filled with zeros. */
const words = (row: Buffer, bytes: number, radix: number, digits: number) =>
  Array.from({ length: Math.ceil(row.length / bytes) }, (_word, at) => {
    const word = Buffer.concat([row.subarray(at * bytes, (at + 1) * bytes), Buffer.alloc(bytes)]);
    return padded(word.readUIntLE(0, bytes), radix, digits);
  });
const NAMES: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  c: { 10: String.raw`\n` },
  a: { 10: "nl", 32: "sp" },
};
const cells = (row: Buffer, names: Readonly<Record<number, string>> = {}) =>
  mapped(row, (byte) => {
    const plain = byte < 0x7f && byte >= 0x20 ? String.fromCharCode(byte) : padded(byte, 8, 3);
    return (names[byte] ?? plain).padStart(3);
  });

const xxd = (at: number) => `${padded(at, 16, 8)}: `;
const dump = (at: number) => `${padded(at, 16, 8)}  `;
const od = (at: number) => `${padded(at, 8, 7)} `;

const TOOLS: Readonly<Record<string, Dump>> = {
  xxd: layout({ size: 16, groups: (row) => grouped(row, 2), offset: xxd, column: (text) => `  ${text}` }),
  "xxd -u": layout({
    size: 16,
    groups: (row) => grouped(row, 2).map((group) => group.toUpperCase()),
    offset: xxd,
    column: (text) => `  ${text}`,
  }),
  "xxd -c 8 -g 1": layout({ size: 8, groups: hex, offset: xxd, column: (text) => `  ${text}` }),
  "xxd -c 32 -g 4": layout({
    size: 32,
    groups: (row) => grouped(row, 4),
    offset: xxd,
    column: (text) => `  ${text}`,
  }),
  "xxd -e": layout({
    size: 16,
    groups: (row) => words(row, 4, 16, 8),
    offset: xxd,
    column: (text) => `  ${text}`,
  }),
  "xxd -b": layout({
    size: 6,
    groups: (row) => mapped(row, (byte) => padded(byte, 2, 8)),
    offset: xxd,
    column: (text) => `  ${text}`,
  }),
  "hexdump -C": layout({ size: 16, groups: hex, offset: dump, column: (text) => `  |${text}|` }),
  hexdump: layout({ size: 16, groups: (row) => words(row, 2, 16, 4), offset: od }),
  "od -A x -t x1z": layout({
    size: 16,
    groups: hex,
    offset: (at) => `${padded(at, 16, 6)} `,
    column: (text) => `  >${text}<`,
  }),
  "od -A d -t x1": layout({ size: 16, groups: hex, offset: (at) => `${padded(at, 10, 7)} ` }),
  od: layout({ size: 16, groups: (row) => words(row, 2, 8, 6), offset: od }),
  "od -b": layout({ size: 16, groups: (row) => mapped(row, (byte) => padded(byte, 8, 3)), offset: od }),
  "od -t u1": layout({
    size: 16,
    groups: (row) => mapped(row, (byte) => String(byte).padStart(3)),
    offset: od,
  }),
  "od -c": layout({ size: 16, groups: (row) => cells(row, NAMES["c"]), offset: od }),
  "od -a": layout({ size: 16, groups: (row) => cells(row, NAMES["a"]), offset: od }),
  "a debugger": layout({
    size: 8,
    groups: hex,
    apart: "\t",
    offset: (at) => `0x7ffe${padded(at, 16, 8)}:\t`,
  }),
};

/** Two secrets of the same size with the same ends: of a word, the bytes beside the secret are part too. */
const secrets = fc
  .array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.tuple(
          fc.constantFrom(...Array.from("abcXYZ019/+=%&-_.~:")),
          fc.constantFrom(...Array.from("qrsTUV2345")),
        ),
      },
      { weight: 1, arbitrary: fc.constantFrom([" ", "x"] as const, ["é", "ß"] as const) },
    ),
    { minLength: 6, maxLength: 40 },
  )
  .filter((pairs) => pairs.some(([one, other]) => one !== other))
  .map((pairs) => [0, 1].map((which) => `Kq7h${pairs.map((pair) => pair[which]).join("")}w8jZ`));

it.each(Object.entries(TOOLS))("%s shows nothing of a secret, wherever a row ends", (_name, write) => {
  fc.assert(
    fc.property(secrets, fc.nat(40), fc.nat(40), ([one = "", other = ""], before, after) => {
      const masker = createMasker([one, other]);
      const [shown = "", same] = [one, other].map((secret) => {
        const bytes = Buffer.from("b".repeat(before) + secret + "y".repeat(after));
        return masker.mask(write(bytes));
      });
      expect(shown).toContain(MASK);
      expect(shown).toBe(same);
    }),
    { numRuns: 150 },
  );
});

it("masks a dump that arrives in pieces as it masks the whole", () => {
  const tools = fc.constantFrom(...Object.values(TOOLS));
  const cuts = fc.array(fc.nat(1_000), { maxLength: 12 });
  fc.assert(
    fc.property(secrets, tools, fc.nat(40), cuts, ([secret = ""], write, before, places) => {
      const masker = createMasker([secret]);
      const text = write(Buffer.from(`${"b".repeat(before)}${secret} and more after it`));
      const stream = masker.stream();
      let shown = "";
      let at = 0;
      for (const place of [...new Set(places)].toSorted((a, b) => a - b)) {
        shown += stream.push(text.slice(at, place));
        at = Math.max(at, place);
      }
      shown += stream.push(text.slice(at)) + stream.end();
      expect(shown).toBe(masker.mask(text));
    }),
    { numRuns: 500 },
  );
});

it("leaves dumps of other bytes, and other numbers in columns, as they are", () => {
  const masker = createMasker(["Kq7h-some-secret-w8jZ"]);
  const bytes = Buffer.from("Kq7h-some-other thing, and Kq7h-some-secret, which is cut off here.");
  for (const write of Object.values(TOOLS)) expect(masker.mask(write(bytes))).toBe(write(bytes));
});
