import { describe, expect, it } from "vitest";
import { agentNames, readWish } from "../../../activities/follow/conversation.ts";

const names = agentNames(undefined, "acme-bot[bot]");
const wanted = (text: string) => readWish(text, names);

describe("a comment speaks to the agent", () => {
  it.each([
    "@longhaul please rename it",
    "Hello @Longhaul, why?",
    "(@longhaul)",
    "@acme-bot: rename it",
    "text\n/longhaul rename it",
    "> quoted\n\n@longhaul no",
    "```\ncode\n```\n@longhaul that",
    "@longhaul stop using tabs",
    "@longhaul allow null there, and retry the request",
  ])("as a message: %j", (text) => {
    expect(wanted(text)).toBe("message");
  });

  it.each([
    ["/longhaul stop", "stop"],
    ["  /Longhaul  STOP. ", "stop"],
    ["@longhaul forget", "forget"],
    ["Thanks.\r\n/acme-bot continue\r\n", "continue"],
    ["/longhaul continue\n/longhaul stop", "stop"],
  ])("as a command: %j", (text, command) => {
    expect(wanted(text)).toBe(command);
  });
});

describe("a comment does not speak to the agent", () => {
  it.each([
    ["another name", "@longhaul-dev and @longhauls and @longhaul_x and mail@longhaul and @longhaulé"],
    ["no name", "please rename it"],
    ["code", "`@longhaul x` and ``/longhaul stop``"],
    ["a code span of two lines", "`a\n/longhaul stop\n`"],
    ["a fence", "```\n/longhaul stop\n@longhaul x\n```"],
    ["a longer fence that looks ended", "````\n```\n/longhaul stop\n````"],
    ["a fence in a list", "* ```\n  /longhaul stop\n  ```"],
    ["indented code", "see:\n\n    /longhaul stop"],
    ["a quotation", "> @longhaul x\n> /longhaul stop"],
    ["the last paragraph of a quotation", "> somebody said\n/longhaul stop"],
    ["a quotation in a quotation in a list", "1. > > /longhaul stop"],
    ["an HTML comment", "fine <!-- @longhaul x\n/longhaul stop -->"],
    ["an attribute", '<img alt="\n/longhaul stop\n">'],
    ["an image", "![@longhaul x](y)"],
    ["a reference", "[//]: # (@longhaul x)"],
    ["an address", "[x](/longhaul) https://a.test/(@longhaul)"],
    ["a mail's answer", "ok\n\nOn Mon, Ann <a@b.test> wrote:\n@longhaul x"],
    ["an approval", "/longhaul allow"],
    ["an approval with words", "/longhaul deny because"],
    ["a command inside a line", "you could say /longhaul stop"],
  ])("in %s", (_what, text) => {
    expect(wanted(text)).toBeUndefined();
  });

  it("under another name than the configured one", () => {
    const configured = agentNames("robot", "ann");
    expect(readWish("@longhaul x, @ann y", configured)).toBeUndefined();
    expect(readWish("@robot x", configured)).toBe("message");
  });
});
