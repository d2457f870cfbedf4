import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readArguments } from "../../../../activities/tools/reading/read-call.ts";

const LS = { command: "ls" };

describe("arguments that are no JSON object as they stand", () => {
  it.each<[string, string, object]>([
    ["nothing", "", {}],
    ["null", "null", {}],
    ["Python's None", "None", {}],
    ["the empty list of PHP", "[]", {}],
    ["an empty object before the real one", '{}{"command":"ls"}', LS],
    ["an empty object after it", '{"command":"ls"}\n{}', LS],
    ["the same object twice", '{"command":"ls"}{"command": "ls"}', LS],
    ["a list of one object", '[{"command":"ls"}]', LS],
    ["a raw line break in a string", '{"command":"a\nb"}', { command: "a\nb" }],
    ["a raw tab and a carriage return", '{"command":"a\tb\r\n"}', { command: "a\tb\r\n" }],
    ["a comma after the last field", '{"command":"ls",}', LS],
    ["a comma after the last item", '{"list":[1,2,],}', { list: [1, 2] }],
    ["a fence", '```json\n{"command":"ls"}\n```', LS],
    ["a fence on one line", '```{"command":"ls"}```', LS],
    ["a fence that is not closed", '```json\n{"command":"ls"}\n', LS],
    ["a fence inside a string inside a fence", '```json\n{"command":"```x```"}\n```', { command: "```x```" }],
    ["JSON in a JSON string", JSON.stringify(JSON.stringify(LS)), LS],
    ["JSON in a JSON string in a JSON string", JSON.stringify(JSON.stringify(JSON.stringify(LS))), LS],
    [
      "Python's literals",
      "{'command': 'ls', 'background': True, 'cwd': None}",
      { ...LS, background: true, cwd: null },
    ],
    ["a double quote in single quotes", `{'command': 'echo "hi"'}`, { command: 'echo "hi"' }],
    ["an escaped apostrophe", String.raw`{"command":"it\'s"}`, { command: "it's" }],
    ["names without quotes", '{command: "ls", timeout_seconds: 5}', { ...LS, timeout_seconds: 5 }],
    ["typographic quotes", "{“command”: “ls”}", LS],
    ["comments", '{ // what\n"command": "ls", /* all */ # more\n}', LS],
    ["a comment after the last value", '{"command": "ls" // list\n}', LS],
    ["no closing bracket", '{"command":"ls"', LS],
    ["no closing brackets", '{"items":[{"a":1},{"a":2}', { items: [{ a: 1 }, { a: 2 }] }],
    ["a closing bracket too many", '{"command":"ls"}}', LS],
    ["a mark of the template", '{"command":"ls"}<|im_end|>', LS],
    ["marks around it", '<tool_call>\n{"command":"ls"}\n</tool_call>', LS],
    ["numbers of other languages", '{"a": +5, "b": .5, "c": 5., "d": undefined}', { a: 5, b: 0.5, c: 5 }],
    ["a byte order mark", '\uFEFF{"command":"ls"}', LS],
  ])("have one plain meaning: %s", (_, text, input) => {
    expect(readArguments(text)).toEqual({ input });
  });

  it.each<[string, string, string]>([
    [
      "a quote that is not escaped",
      '{"command":"echo "hi""}',
      'line 1, column 19: expected a "," or "}" after a value, and found "hi". A " inside',
    ],
    ["an apostrophe in single quotes", "{'command': 'it's'}", "line 1, column 17"],
    [
      "an escape that JSON has not",
      String.raw`{"pattern":"\d+"}`,
      String.raw`line 1, column 13: "\d" is no escape of JSON. A backslash is written \\.`,
    ],
    [
      "two different objects",
      '{"command":"ls"}\n{"command":"rm"}',
      "line 2, column 1: a second value follows, which differs",
    ],
    [
      "a field twice, with different values, beside a comma too many",
      '{"a":1,"a":2,}',
      'the field "a" is there twice',
    ],
    ["a list of two", '[{"a":1},{"a":2}]', "one object is expected, and this is a list"],
    [
      "a word without quotes",
      "{command: ls}",
      'line 1, column 11: expected a value, and found "ls". A text is written in quotes.',
    ],
    ["prose", "I will list the files", 'expected a value, and found "I"'],
    [
      "a string that does not end",
      '{"command": "rm -rf build',
      "line 1, column 13: the text ends inside a string",
    ],
    ["a missing comma", '{"a": 1 "b": 2}', 'line 1, column 9: expected a "," or "}"'],
    ["the wrong bracket", '{"a": [1}', 'expected a "," or "]" after a value, and found "}"'],
    ["an octal number", '{"mode": 0644}', "the number 0644 begins with 0"],
    ["NaN", '{"a": NaN}', 'found "NaN"'],
    ["a comment that may belong to a string", '{"command": "curl " // "x"\n}', "inside a string"],
    [
      "a place in JSON inside a string",
      JSON.stringify('{"a" 1}'),
      'expected a ":" after the name of a field',
    ],
  ])("are refused with the reason and the place where a reader would guess: %s", (_, text, reason) => {
    const read = readArguments(text);
    expect(read).toHaveProperty("reason");
    expect((read as { reason: string }).reason).toContain(reason);
  });

  it("quotes the text at the place, not all of it", () => {
    const { reason } = readArguments(
      `{"content":"${"x".repeat(5_000)}\n${"y".repeat(100)} "z" ${"x".repeat(5_000)}"}`,
    ) as { reason: string };
    expect(reason).toMatch(/line 2, column 103: /);
    expect(reason).toMatch(/after >>>: …y+ ">>>z" x+…$/);
    expect(reason.length).toBeLessThan(300);
  });

  it("does not end on nesting without end", () => {
    expect(readArguments("[".repeat(100_000))).toHaveProperty("reason");
    expect(readArguments(`${'{"a":'.repeat(100_000)}`)).toHaveProperty("reason");
  });

  it("reads long texts in a moment", () => {
    const begun = performance.now();
    readArguments(`{"content":"${"  \t\n".repeat(250_000)}",}`);
    readArguments(`${"{}".repeat(20_000)}x`);
    readArguments(`{"content":"${" ".repeat(1_000_000)}`);
    expect(performance.now() - begun).toBeLessThan(2_000);
  });
});

describe("arguments that were cut by the output limit", () => {
  it.each([
    '{"command":"ls"',
    '{"command":"rm -rf /tmp/a',
    '{"list":[1',
    "",
    '{}{"command":"r',
    '```json\n{"a":1,',
    JSON.stringify('{"command":"ls"'),
  ])("are never completed: %s", (text) => {
    const { reason } = readArguments(text, true) as { reason: string };
    expect(reason).toMatch(
      /^(the answer reached its output limit here: they end after \d+ characters|line 1)/,
    );
  });

  it("are taken where they are whole, and need only what says nothing about their end", () => {
    expect(readArguments('{"command":"ls"}', true)).toEqual({ input: LS });
    expect(readArguments('{"command":"a\nb",}', true)).toEqual({ input: { command: "a\nb" } });
  });
});

describe("generated arguments", () => {
  const RUNS = { seed: 35, numRuns: 1_000 };
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>);

  it("that are JSON objects are untouched, however they are written", () => {
    fc.assert(
      fc.property(object, fc.constantFrom(0, 2, "\t"), fc.boolean(), (given, indent, isCut) => {
        const text = JSON.stringify(given, null, indent);
        expect(readArguments(text, isCut)).toEqual({ input: JSON.parse(text) as unknown });
      }),
      RUNS,
    );
  });

  /** Ways of writing an object that leave it one meaning. */
  const spoiled: Readonly<Record<string, (text: string) => string>> = {
    emptyBefore: (text) => `{}${text}`,
    twice: (text) => text + text,
    fenced: (text) => `\`\`\`json\n${text}\n\`\`\``,
    encoded: (text) => JSON.stringify(text),
    listed: (text) => `[${text}]`,
    commaLast: (text) => (text === "{}" ? text : `${text.slice(0, -1)},}`),
    bracketMissing: (text) => text.slice(0, -1),
    bracketTooMany: (text) => `${text}}`,
    mark: (text) => `${text}<|call|>`,
    comment: (text) => `{/* said */${text.slice(1)}`,
    rawBreaks: (text) =>
      text.replaceAll(/(?<!\\)((?:\\\\)*)\\n/g, "$1\n").replaceAll(/(?<!\\)((?:\\\\)*)\\t/g, "$1\t"),
  };

  it.each(Object.keys(spoiled))("that are spoiled without losing their meaning are read: %s", (kind) => {
    const spoil = spoiled[kind] ?? String;
    fc.assert(
      fc.property(object, (given) => {
        expect(readArguments(spoil(JSON.stringify(given)))).toEqual({
          input: JSON.parse(JSON.stringify(given)) as unknown,
        });
      }),
      RUNS,
    );
  });

  it("that are cut anywhere are never taken for whole ones", () => {
    fc.assert(
      fc.property(object, fc.nat(), (given, place) => {
        const text = JSON.stringify(given);
        const cut = text.slice(0, place % text.length);
        expect(readArguments(cut, true), cut).toHaveProperty("reason");
      }),
      RUNS,
    );
  });

  it("with unescaped quotes, brackets and backslashes are read as nothing that was not written", () => {
    const command = fc.record({
      command: fc.string({
        unit: fc.constantFrom("a", '"', "'", "\\", " ", "{", "}", ",", ":", "\n", "/", "#"),
      }),
    });
    fc.assert(
      fc.property(command, (given) => {
        // As a model writes that forgets to escape.
        const read = readArguments(`{"command": "${given.command}"}`);
        if (!("input" in read)) return;
        const broken = given.command.replaceAll("\n", "\\n").replaceAll(/(?<!\\)((?:\\\\)*)\\'/g, "$1'");
        expect([given, strictly(`{"command": "${broken}"}`)]).toContainEqual(read.input);
      }),
      { ...RUNS, numRuns: 10_000 },
    );
  });
});

function strictly(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
