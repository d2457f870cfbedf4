import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import type { EventData, EventType, SessionEvent } from "../../../activities/store/event.ts";
import { lastWholeLine, parseProgress, progressNote } from "../../../activities/contract/calls.ts";
import { MarkdownAnswer } from "../../../client/render/answers.ts";
import { Progress, statusLine } from "../../../client/render/progress.ts";
import { LiveArea } from "../../../client/screen/live-area.ts";
import { renderMarkdown } from "../../../client/screen/markdown.ts";
import { fitted, WordWrap, wrapped } from "../../../client/screen/wrap.ts";
import type { Style } from "../../../client/console/output.ts";

const style: Style = (look, text) => (look === "dim" ? text : `<${look}>${text}</>`);
const plain: Style = (_look, text) => text;

describe("wrapping", () => {
  it("breaks between words, however the text is split into pieces", () => {
    const text = "one two three  four\nfive, sixsevenandmore x";
    const whole = "one two\nthree\nfour\nfive,\nsixsevenandmore\nx";
    for (let size = 1; size < 12; size++) {
      const wrap = new WordWrap(8);
      let out = "";
      for (let at = 0; at < text.length; at += size) out += wrap.push(text.slice(at, at + size));
      expect(out + wrap.end()).toBe(whole);
    }
  });

  it("keeps a line's indent, counts cells, and cuts with an ellipsis", () => {
    expect(wrapped("    │ aaaa bbbb cccc", 14)).toBe("    │ aaaa\n    bbbb cccc");
    expect(stripVTControlCharacters(wrapped("\u001b[2m  aaaa bbbb cccc\u001b[22m", 12))).toBe(
      "  aaaa bbbb\n  cccc",
    );
    expect(fitted("日本語テキスト", 9)).toBe("日本語テ…");
    expect(fitted("short", 9)).toBe("short");
  });
});

describe("Markdown on a terminal", () => {
  it("draws headings, emphasis, lists, code, quotes, tables and links", () => {
    const text =
      "# Done\n\nAll **12** tests `pass`, see [the log](https://x.test/a).\n\n- [x] fixed\n- [ ] left\n  1. sub\n\n```ts\nconst a = 1;\n```\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | `two` |";
    expect(renderMarkdown(text, { style, columns: 80 })).toBe(
      [
        "<bold>Done</>",
        "",
        "All <bold>12</> tests <cyan>pass</>, see the log (https://x.test/a).",
        "",
        "☑ fixed",
        "☐ left",
        "  1. sub",
        "",
        "    <cyan>const a = 1;</>",
        "",
        "│ quoted",
        "",
        "<bold>a</>  <bold>b</>",
        "─  ────────────",
        "1  <cyan>two</>",
      ].join("\n"),
    );
  });

  it("shows plain text unchanged, and escapes terminal sequences", () => {
    expect(renderMarkdown("a <b>x</b> & __init__.py \u001b[2J*", { style: plain, columns: 80 })).toBe(
      "a <b>x</b> & init.py *",
    );
  });

  it("prints each block of an answer once it is complete, and keeps the rest pending", () => {
    let out = "";
    const answer = new MarkdownAnswer(
      (text) => (out += text),
      () => ({ style: plain, columns: 40 }),
    );
    answer.write("First **par");
    expect({ out, pending: answer.pending() }).toEqual({ out: "", pending: ["First **par"] });
    answer.write("agraph**.\n\n- one\n- two");
    expect({ out, pending: answer.pending() }).toEqual({
      out: "First paragraph.\n\n",
      pending: ["• one", "• two"],
    });
    answer.end();
    expect({ out, open: answer.isOpen() }).toEqual({
      out: "First paragraph.\n\n• one\n• two\n",
      open: false,
    });
  });
});

it("the live area erases what it drew, even wrapped by a narrower terminal, and cleans texts", () => {
  let out = "";
  const size = { columns: 20, rows: 10 };
  const area = new LiveArea(
    (text) => (out += text),
    () => size,
  );
  area.show(["pending", "0:01 step 1"]);
  expect(out).toBe("pending\n0:01 step 1");
  out = "";
  area.show(["pending", "0:01 step 1"]);
  expect(out).toBe("");
  size.columns = 10;
  area.print("note\u001b[2J\n");
  const up = "\u001b[1A\r\u001b[2K";
  expect(out).toBe(`\r\u001b[2K${up}${up}note\npending\n0:01 step 1`);
  out = "";
  area.show([]);
  area.print("last\n");
  expect(out).toBe(`\r\u001b[2K${up}${up}last\n`);
});

const AT = Date.parse("2026-01-02T03:04:05.000Z");

function progressOf(...events: readonly [EventType, unknown][]): Progress {
  const progress = new Progress();
  for (const [type, data] of events) {
    const at = new Date(AT).toISOString();
    progress.event({ seq: 1, sessionId: "s", epoch: 1, step: 3, attempt: 1, at, type, data } as SessionEvent);
  }
  return progress;
}

describe("the status line", () => {
  const call: EventData["llm:tool-call"] = { callId: "c", index: 0, name: "bash", about: "npm test" };
  const progress = progressOf(
    ["session:started", { task: "t", model: "m", continued: false }],
    ["step:started", { estimatedInput: 10, estimated: true, limit: 70, window: 100 }],
    ["llm:response", { content: "", contextUsed: 34, contextLimit: 100, costUsd: 0.021 }],
    ["llm:tool-call", call],
    ["message:queued", { id: "m", position: 1, excerpt: "x" }],
  );
  const line = (columns: number, output = new Map([["s3c0", "ok 12 - adds"]])) =>
    statusLine({ progress, output, nowMs: AT + 67_000, sinceMs: AT + 60_000, columns, style: plain });

  it("has clock, step, the running command with its last line, context, queue and cost", () => {
    expect(line(120)).toBe(
      "1:07 step 3  bash npm test 1:07 › ok 12 - adds  context ███░░░░░ 34 % · ✉ 1 waiting · $0.0210",
    );
  });

  it("fits any width", () => {
    for (const columns of [59, 79, 199]) {
      const text = line(columns, new Map([["s3c0", "very ".repeat(100)]]));
      expect(text.length).toBeLessThanOrEqual(columns);
      expect(text).toContain("bash npm test");
    }
  });
});

it("a heartbeat shows a command's progress and its last complete line", () => {
  expect(parseProgress(progressNote("s12c0", 1_234, "a · b"))).toEqual({ key: "s12c0", line: "a · b" });
  expect(parseProgress(progressNote("s12c0", 1_234, undefined))).toEqual({
    key: "s12c0",
    line: "1,234 bytes",
  });
  expect(parseProgress("waiting for a slot")).toBeUndefined();
  expect(lastWholeLine("one\ntwo\r 50 %\rsk-half", true)).toBe("50 %");
  expect(lastWholeLine("cret\nwhole\n", false)).toBe("whole");
  expect(lastWholeLine("only a part", true)).toBeUndefined();
});
