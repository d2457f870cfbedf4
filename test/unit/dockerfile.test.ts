import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readDockerfile, withOwnLayers } from "../../activities/sandbox/dockerfile.ts";

const read = (text: string, args: Record<string, string> = {}) => readDockerfile(text, args);
const FROM = "FROM base\n";

describe("a source of ADD that the engine would fetch", () => {
  const url = "http://127.0.0.1:8000/x";
  it.each([
    `ADD ${url} /x`,
    `add ${url} /x`,
    `  Add\t${url}\t/x`,
    `ADD --chown=1:1 ${url} /x`,
    `ADD a b ${url} /x/`,
    `ADD ["${url}", "/x"]`,
    `ADD ["a", "\\u0068ttp://127.0.0.1/x", "/x"]`,
    `ONBUILD ADD ${url} /x`,
    `onbuild onbuild add ${url} /x`,
    `ADD \\\n${url} /x`,
    `ADD \\\n# a remark\n\n${url} \\\n /x`,
    `A\\\nDD ${url} /x`,
    `RUN true \\\\\nADD ${url} /x`,
    `RUN true \\\u00a0\nADD ${url} /x`,
    `# escape=\`\nADD \`\n${url} /x`,
    `# escape=\`\nRUN dir c:\\\nADD ${url} /x`,
    `ADD "ht"tp://x /x`,
    `ADD ht\\tp://x /x`,
    `ARG A=${url}\nADD $A /x`,
    `ENV A=ttp://x\nADD h$A /x`,
    `ADD \${A:-x} /x`,
    `ADD https://example.com/x.tgz /x`,
    `ADD git@github.com:a/b.git /x`,
    `ADD github.com/a/b /x`,
    `ADD git://h/x /x`,
    `ADD ftp://h/x /x`,
    `ADD me@host:x.git /x`,
    `ADD ["a" "b"] /x`,
    `\uFEFFADD ${url} /x`,
    `ADD ${url} /x\r`,
    `RUN a\u2028ADD ${url} /x`,
  ])("%j is refused by its line", (line) => {
    expect(read(`${FROM}${line}\n`).refused?.line).toBeGreaterThan(1);
  });

  it("is found wherever it stands and however its lines are broken", () => {
    const gap = fc.constantFrom(" ", "  ", "\t", " \\\n", " \\ \n\t", " \\\n# x\n", " \\\n\n");
    const word = fc.constantFrom("ADD", "add", "aDd");
    const noise = fc.array(fc.constantFrom("RUN true", "COPY a /b", "# x", "", "RUN a \\\n b", "ENV A=b"), {
      maxLength: 5,
    });
    const scheme = fc.constantFrom("http", "https", "HTTP", "git", "ssh");
    fc.assert(
      fc.property(noise, word, gap, scheme, gap, (before, add, one, kind, two) => {
        const text = `${FROM}${before.join("\n")}\n${add}${one}${kind}://h/x${two}/y\n`;
        expect(read(text).refused).toBeDefined();
      }),
    );
  });
});

it.each([
  "ADD app.tgz /x",
  "ADD . /x",
  "ADD app-$VERSION.tgz /x",
  "ADD ./$NAME /x",
  'ADD ["a b", "/x"]',
  "COPY http /x",
  "RUN curl http://example.com/x \\\n  && git \\\n    add $FILES",
  "RUN psql -c 'select * \\\n  from users'",
  "ENV A=http://x",
  'LABEL a="ADD http://x /"',
])("%j is built", (line) => {
  expect(read(`${FROM}${line}\n`).refused).toBeUndefined();
});

describe("the images that a build takes", () => {
  const images = (text: string, args?: Record<string, string>) =>
    read(text, args).images.map(({ image }) => image);
  it("are those of FROM and COPY --from, without the file's own stages", () => {
    expect(
      images(
        "FROM --platform=linux/amd64 a:1 AS one\nFROM one\nFROM scratch\nCOPY --from=one /a /b\nCOPY --from=0 /a /b\nCOPY --from=b:2 /a /b\n",
      ),
    ).toEqual(["a:1", "b:2"]);
  });

  it("are told with the arguments before the first FROM", () => {
    const text = "ARG BASE=a\nARG TAG\nFROM $BASE:${TAG:-2}\nFROM ${BASE}\n";
    expect(images(text)).toEqual(["a:2", "a"]);
    expect(images(text, { BASE: "private/b", TAG: "3" })).toEqual(["private/b:3", "private/b"]);
  });

  it.each(["FROM $UNKNOWN\n", "FROM ${A:+b}\n", "FROM a\nCOPY --from=$X a /b\n", "FROM a'b'\n"])(
    "that cannot be told for sure are refused: %j",
    (text) => {
      expect(read(text).refused?.why).toContain("cannot be told for sure");
    },
  );

  it("are found also where readers of continued lines differ", () => {
    expect(images("FROM a\nRUN true \\\\\nFROM private\n")).toContain("private");
    expect(images("# escape=`\nFROM a\nRUN dir c:\\\nFROM private\n")).toContain("private");
  });
});

describe("layers of one's own", () => {
  const own = (text: string | Buffer) => withOwnLayers(Buffer.from(text), "k")?.toString("latin1");
  const label = 'LABEL longhaul.setup.layers="k"';

  it.each([
    ["FROM a\nRUN b\n", `FROM a\n${label}\nRUN b\n`],
    ["FROM a AS x\r\nRUN b\r\nFROM x\r\n", `FROM a AS x\r\n${label}\nRUN b\r\nFROM x\r\n${label}\n`],
    ["ARG A\nFROM \\\n  a\nRUN b", `ARG A\nFROM \\\n  a\n${label}\nRUN b`],
    ["FROM a", `FROM a\n${label}`],
    ["FROM a\nRUN echo \\\nFROM b\n", `FROM a\n${label}\nRUN echo \\\nFROM b\n`],
  ])("begin with a label after each FROM: %j", (text, sent) => {
    expect(own(text)).toBe(sent);
  });

  it.each(["FROM a\nRUN true \\\\\nFROM b\n", "FROM a\rFROM b\n", "FROM a\u2028b\n"])(
    "are not made where a stage's beginning is not certain: %j",
    (text) => {
      expect(own(text)).toBeUndefined();
    },
  );

  it("leave all other lines as they are, whatever their bytes", () => {
    const line = fc.oneof(
      fc.constantFrom("FROM a", "from a as b", "RUN x", "# c", "", "COPY --from=b /a /b", 'ENV A="\u00e9"'),
      fc.string({ unit: fc.constantFrom("a", " ", "\\", "#", "=", "\u00fc") }),
    );
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const text = lines.join("\n");
        const sent = withOwnLayers(Buffer.from(text), "k")?.toString();
        if (sent === undefined) return;
        const rest = sent.split("\n").filter((one) => one !== label);
        expect(rest).toEqual(lines.length === 0 ? [""] : lines);
      }),
      { numRuns: 2_000 },
    );
  });
});
