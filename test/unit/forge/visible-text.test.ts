import { describe, expect, it } from "vitest";
import { spokenText, visibleText } from "../../../activities/forge/visible-text.ts";

describe("what people see of a comment", () => {
  it.each([
    ["an HTML comment", "a <!-- b --> c", "a   c"],
    ["a comment that never ends", "a\n<!-- b\n\nc", "a\n "],
    ["a comment that is none in code", "`<!--` a", "`<!--` a"],
    [
      "a fence in a comment, and a comment in a fence",
      "<!--\n```\n-->\na\n```\n<!--\n```\nb",
      " \na\n```\n<!--\n```\nb",
    ],
    ["characters without width and such as reorder", "a\u200Bb\u202Ec\u{E0041}\u2066d\u2060", "abcd"],
    ["attributes", 'a <img src="x" alt="b > c"> <details open>', "a <img> <details>"],
    ["the text behind an image, and titles", '![b](x.png "c") [d](y "e")', "![](x.png) [d](y)"],
    ["a reference that nothing uses", "a\n[//]: # (hidden)\nb", "a\n\nb"],
    ["the title of a reference that is used", 'a [b]\n\n[B]: x "hidden"', "a [b]\n\n[B]: x"],
    ["a footnote that nothing uses", "a\n[^1]: hidden words", "a\n"],
    ["instructions for programs", "<?php hidden ?>a<!DOCTYPE hidden>b<script>hidden</script>c", " a b c"],
    ["nothing of plain words", "a < b & c > d, <https://e.test/f>", "a < b & c > d, <https://e.test/f>"],
    ["nothing of emoji", "\u{1F469}\u200D\u{1F52C} \u2764\uFE0F", "\u{1F469}\u200D\u{1F52C} \u2764\uFE0F"],
  ])("is without %s", (_what, text, seen) => {
    expect(visibleText(text)).toBe(seen);
  });

  it("does not change when it is read again", () => {
    const text = "<<!-- a -->!-- b --> `<!-- -->``";
    expect(visibleText(visibleText(text))).toBe(visibleText(text));
  });

  it.each([
    ["lists", "-  ".repeat(20_000)],
    ["quotations", "> ".repeat(30_000)],
    ["tags", `<a "`.repeat(16_000)],
    ["mixed quotes", `<a '"<b "'`.repeat(6_000)],
    ["images", "![".repeat(32_000)],
    ["links", "](".repeat(32_000)],
    ["comments", "<!--".repeat(16_000)],
    ["fences", "```\n~~~\n".repeat(8_000)],
    ["ticks", Array.from({ length: 340 }, (_, length) => "`".repeat(length + 1)).join(" ")],
    ["references", Array.from({ length: 6_000 }, (_, at) => `[${at}]: x`).join("\n")],
    ["brackets", "[".repeat(65_000)],
    ["mail", "On \n".repeat(16_000)],
  ])("is read in bounded time: %s", (_what, text) => {
    const startMs = performance.now();
    spokenText(visibleText(text));
    expect(performance.now() - startMs).toBeLessThan(2_000);
  });
});

describe("what a person says", () => {
  it.each([
    ["fenced code", "a\n```js\nb\n```\nc", ["a", "c"]],
    ["a fence that never ends", "a\n~~~\nb\n\nc", ["a"]],
    ["a fence in a list", "- a\n- ```\n  b\n  ```\nc", ["- a", "c"]],
    ["code in a line, which may have two", "a `b\nc` d", ["a \u00b7 d"]],
    ["indented code", "a\n\n    b\n\tc\nd", ["a", "d"]],
    ["a quotation and its last paragraph", "a\n> b\nc\n\nd", ["a", "d"]],
    ["a quotation in a list", "- > a\n\nb", ["b"]],
    ["quoting elements", "<blockquote>a\n\nb</blockquote>c <code>d</code>", ["\u00b7c \u00b7"]],
    ["addresses", "[a](b) https://c.test/d <https://e.test>", ["[a] \u00b7 \u00b7"]],
    ["what a mail answers to", "a\n\nOn Friday, Ann wrote:\nb", ["a"]],
    ["an older mail", "a\n\n-----Original Message-----\nb", ["a"]],
  ])("is without %s", (_what, text, lines) => {
    const spoken = spokenText(visibleText(text));
    expect(spoken.split("\n").filter((line) => line.trim() !== "")).toEqual(lines);
  });
});
