import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatCsv, parseCsv } from "../src/csv.js";

describe("CSV", () => {
  it("reads quotes, commas and line breaks within a field", () => {
    assert.deepEqual(parseCsv('a,"b, c",d\r\n"x\ny","say ""hi""",\r\n'), [
      ["a", "b, c", "d"],
      ["x\ny", 'say "hi"', ""],
    ]);
  });

  it("takes a byte order mark, bare line feeds, blank lines and a last line without an end", () => {
    assert.deepEqual(parseCsv("\uFEFFa,b\n\n\nc,d"), [
      ["a", "b"],
      ["c", "d"],
    ]);
    assert.deepEqual(parseCsv(""), []);
  });

  it("takes tabs where they are asked for", () => {
    assert.deepEqual(parseCsv("a\tb,c\n", "\t"), [["a", "b,c"]]);
  });

  it("names the line of a quote that is never closed", () => {
    assert.throws(() => parseCsv('a,b\n"c,d\ne'), /line 2/);
  });

  it("gives back whatever it wrote", () => {
    const rows = [
      ['"', ",", "\r\n"],
      ["", "plain", 'a "quoted" word'],
      ["漢字", "tab\there", " spaces "],
    ];
    assert.deepEqual(parseCsv(formatCsv(rows)), rows);
  });
});
