import { describe, expect, it } from "vitest";
import { judgeCall, type PermissionRule } from "../../../activities/tools/permissions/permissions.ts";
import { drawApart } from "../../../activities/tools/terminal/draw-screen.ts";
import { typedKeys, typedText } from "../../../activities/tools/terminal/keys.ts";
import { drawScreen } from "../../../activities/tools/terminal/screen.ts";

describe("keys", () => {
  it.each([
    [["ctrl+c"], "\u0003"],
    [["C-c", "^C", "Ctrl-C", "<ctrl+c>", "control+c"], "\u0003".repeat(5)],
    [["enter", "Return", "tab", "shift+tab", "esc", "space"], "\r\r\t\u001b[Z\u001b "],
    [["ctrl+space", "ctrl+@", "ctrl+[", "ctrl+_", "ctrl+?"], "\u0000\u0000\u001b\u001f\u007f"],
    [["up", "ArrowDown", "f1", "F12"], "\u001b[A\u001b[B\u001bOP\u001b[24~"],
    [
      ["ctrl+left", "shift+alt+home", "ctrl+f5", "alt+delete"],
      "\u001b[1;5D\u001b[1;4H\u001b[15;5~\u001b[3;3~",
    ],
    [["alt+x", "shift+g", "ctrl+alt+d"], "\u001bxG\u001b\u0004"],
    [["Page Up", "page-down", "pgdn"], "\u001b[5~\u001b[6~\u001b[6~"],
    [["q", ":", "+", "-", "ctrl+-", "é", "😀"], undefined],
    [["up up, enter"], "\u001b[A\u001b[A\r"],
    [["backspace", "del"], "\u007f\u001b[3~"],
  ])("%j are typed as a terminal sends them", (keys, text) => {
    if (text === undefined)
      expect(
        typedKeys(
          keys.filter((key) => key !== "ctrl+-"),
          false,
        ),
      ).toEqual({ text: "q:+-é😀" });
    else expect(typedKeys(keys, false)).toEqual({ text });
  });

  it("of the cursor are sent otherwise to programs that ask for that", () => {
    expect(typedKeys(["up", "end", "pageup", "ctrl+up"], true)).toEqual({
      text: "\u001bOA\u001bOF\u001b[5~\u001b[1;5A",
    });
  });

  it.each(["hyper+c", "f13", "ctrl+é", "constructor", "ctrl+-", "cmd+v"])("%s is named as unknown", (key) => {
    expect(typedKeys(["enter", key], false)).toEqual({ unknown: key });
  });

  it("end each line of a text", () => {
    expect(typedText("a\nb\r\nc")).toBe("a\rb\rc");
  });
});

const drawing = (before: string, after: string, more: object = {}) => ({
  bytes: Buffer.from(before + after),
  bytesFrom: 0,
  newFrom: Buffer.byteLength(before),
  size: { rows: 4, cols: 10 },
  ...more,
});
async function changed(before: string, after: string, more: object = {}): Promise<string[]> {
  const drawn = await drawScreen(drawing(before, after, more));
  return drawn.changed.map((row) => drawn.screen.rows[row] ?? "");
}

describe("a screen", () => {
  it("shows of lines that scroll what is new, and the line that went on", async () => {
    expect(await changed("a\r\nb\r\n> ", "x\r\nc\r\n> ")).toEqual(["> x", "c", "> "]);
    expect(await changed("1\r\n2\r\n3\r\n4\r\n5\r\n", "6\r\n7\r\n8\r\n9\r\n")).toEqual([
      "6",
      "7",
      "8",
      "9",
      "",
    ]);
  });

  it("shows rows that changed of a program that draws", async () => {
    const full = "\u001b[?1049h\u001b[Hone\u001b[2;1Htwo\u001b[3;1Hthree";
    expect(await changed(full, "\u001b[2;1HTWO\u001b[4;1Hfour")).toEqual(["TWO", "four"]);
    expect(await changed(`before\r\n${full}`, "\u001b[?1049l")).toContain("before");
  });

  it("shows nothing if nothing changed, and what was erased as empty", async () => {
    expect(await changed("a\r\nb", "")).toEqual([]);
    expect(await changed("a\r\nb", "\rb")).toEqual([]);
    expect(await changed("a\r\nb", "\u001b[2J\u001b[H")).toEqual([""]);
  });

  it("is the same for the same bytes, wherever characters and sequences are cut", async () => {
    const text = "é\u001b[31mr\u001b[0mö\r\n\u001b[2;3Hx";
    const bytes = Buffer.from(text);
    const whole = await drawScreen({ ...drawing("", text), newFrom: 0 });
    for (let at = 0; at <= bytes.length; at++)
      expect((await drawScreen({ ...drawing("", text), newFrom: at })).screen).toEqual(whole.screen);
  });

  it("says when more was new than it can show", async () => {
    const many = "line\r\n".repeat(3_000);
    expect(await drawScreen(drawing("a", many))).toMatchObject({ isCut: true });
    expect(await drawScreen({ ...drawing("", "x\r\ny"), bytesFrom: 500, newFrom: 100 })).toMatchObject({
      isCut: true,
    });
    expect(await drawScreen(drawing("a", "b"))).toMatchObject({ isCut: false });
  });

  it("ignores numbers that would keep it busy", async () => {
    const { screen } = await drawScreen(
      drawing("", "a\u001b[2147483647b\u001b[2147483647S\u001b[2147483647Lb"),
    );
    expect(screen.rows[0]).toBe("ab");
  });

  it("is drawn in a thread, and given up if that takes too long", async () => {
    expect((await drawApart(drawing("", "hello")))?.screen.rows[0]).toBe("hello");
    const busy = "\u001b[999S".repeat(170_000);
    expect(await drawApart({ ...drawing("", busy), size: { rows: 200, cols: 500 } })).toBeUndefined();
  }, 30_000);
});

describe("rules and what is typed", () => {
  const judge = (rules: PermissionRule[], text: string) =>
    judgeCall(rules, { toolName: "write_stdin", input: { id: "s1c0", text } }).action;
  const push: PermissionRule = { tool: "bash", match: "git push *", action: "deny" };

  it.each([
    [[push], "git push origin main\n", "deny"],
    [[push], "cd x && sudo git push\n", "deny"],
    [[push], "print(1 if x else 2)\n", "allow"],
    [[push], "y\n", "allow"],
    [[{ tool: "bash", action: "ask" } as const], "y\n", "ask"],
    [[{ tool: "write_stdin", action: "ask" } as const], "", "ask"],
    [
      [{ tool: "bash", action: "ask" } as const, { tool: "write_stdin", action: "allow" } as const],
      "y\n",
      "allow",
    ],
    [
      [{ tool: "write_stdin", match: "drop table *", action: "deny" } as const],
      "drop table users;\n",
      "deny",
    ],
  ])("%j judge %j: %s", (rules, text, action) => {
    expect(judge([...rules], text)).toBe(action);
  });
});
