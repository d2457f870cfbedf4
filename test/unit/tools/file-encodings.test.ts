/** What the tools do with files that are not plain UTF-8, and with names that only look like the one asked for. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { writeText } from "../../../activities/text/encoding.ts";
import { callTool, putFile, useFakeSandbox } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const put = (name: string, content: string | Uint8Array) => putFile(sandbox, name, content);
const call = (name: string, input: unknown) => callTool(sandbox, name, input);
const bytesOf = (name: string) => readFile(path.join(sandbox.root, name));

const patch = (name: string, change: string) => ({
  patch: `*** Begin Patch\n*** Update File: ${name}\n@@\n${change}\n*** End Patch`,
});

describe.each([
  ["UTF-16 LE with a byte order mark", { encoding: "utf-16le", bom: true }],
  ["UTF-16 BE with a byte order mark", { encoding: "utf-16be", bom: true }],
  ["UTF-16 LE without a byte order mark", { encoding: "utf-16le", bom: false }],
  ["UTF-16 BE without a byte order mark", { encoding: "utf-16be", bom: false }],
  ["UTF-8 with a byte order mark", { encoding: "utf-8", bom: true }],
] as const)("a file in %s", (words, form) => {
  const before = "// Gr\u00FC\u00DFe \u65E5\u672C\r\none\r\ntwo\r\n";

  it("is read, and said to be that", async () => {
    await put("a.cs", writeText(before, form));
    const { text } = await call("read_file", { path: "a.cs" });
    expect(text).toBe(`1\t// Gr\u00FC\u00DFe \u65E5\u672C\n2\tone\n3\ttwo\n\n(lines end in CRLF; ${words})`);
  });

  it("stays so when it is edited, patched or written anew", async () => {
    await put("a.cs", writeText(before, form));
    await call("edit_file", { path: "a.cs", old_string: "one", new_string: "\u4E00\nmore" });
    const edited = before.replace("one", "\u4E00\r\nmore");
    expect(await bytesOf("a.cs")).toEqual(Buffer.from(writeText(edited, form)));
    await call("apply_patch", patch("a.cs", "-two\n+zwei"));
    expect(await bytesOf("a.cs")).toEqual(Buffer.from(writeText(edited.replace("two", "zwei"), form)));
    const { text } = await call("write_file", { path: "a.cs", content: "new\nlines\n" });
    expect(text).toContain(`Kept as it was: ${words}, CRLF`);
    expect(await bytesOf("a.cs")).toEqual(Buffer.from(writeText("new\r\nlines\r\n", form)));
  });

  it("is read page by page if it is large", async () => {
    await put("a.cs", writeText(`${before}${"x\u00FC line\n".repeat(200_000)}`, form));
    const { text } = await call("read_file", { path: "a.cs", offset: 150_000, limit: 1 });
    expect(text).toContain("150000\tx\u00FC line\n");
  });
});

describe("a file whose encoding can only be guessed", () => {
  const gbk = Buffer.from("2f2f20c4e3bac30a783d310a", "hex");

  it("is shown, and named", async () => {
    await put("a.c", gbk);
    const { text } = await call("read_file", { path: "a.c" });
    expect(text).toContain("1\t// \u4F60\u597D\n2\tx=1\n");
    expect(text).toContain("not UTF-8 text (it looks like GBK)");
  });

  it("is changed by no tool that would write UTF-8", async () => {
    await put("a.c", gbk);
    for (const [tool, input] of [
      ["edit_file", { path: "a.c", old_string: "x=1", new_string: "x=2" }],
      ["apply_patch", patch("a.c", "-x=1\n+x=2")],
      ["write_file", { path: "a.c", content: "// \u4F60\u597D\nx=2\n" }],
      [
        "apply_patch",
        { patch: "*** Begin Patch\n*** Delete File: a.c\n*** Add File: a.c\n+// \u4F60\n*** End Patch" },
      ],
    ] as const) {
      const result = await call(tool, input);
      expect(result.outcome, tool).toBe("error");
      expect(result.text).toContain("looks like GBK");
      expect(await bytesOf("a.c")).toEqual(gbk);
    }
  });

  it("is moved as it is, and replaced by what every encoding writes alike", async () => {
    await put("a.c", gbk);
    await call("apply_patch", {
      patch: "*** Begin Patch\n*** Update File: a.c\n*** Move to: b.c\n*** End Patch",
    });
    expect(await bytesOf("b.c")).toEqual(gbk);
    expect((await call("write_file", { path: "b.c", content: "plain\n" })).outcome).toBe("completed");
  });
});

describe("a name that only looks like the one asked for", () => {
  const given = "Caf\u00E9/Bild 10.04 PM \u2013 Kopie's.txt";
  const real = "Cafe\u0301/Bild 10.04\u202FPM - Kopie\u2019s.txt";

  it("is read, listed, searched, edited and written, and said", async () => {
    await put(real, "one\n");
    for (const [tool, input] of [
      ["read_file", { path: given }],
      ["list_directory", { path: "Caf\u00E9" }],
      ["grep_content", { pattern: "one", path: given }],
      ["glob_files", { pattern: "*", path: "Caf\u00E9" }],
      ["edit_file", { path: given, old_string: "one", new_string: "two" }],
      ["write_file", { path: given, content: "three\n" }],
    ] as const) {
      const { outcome, text } = await call(tool, input);
      expect(outcome, text).toBe("completed");
      expect(text).toContain("the only name that looks the same");
      expect(text).toContain("Cafe\\u0301");
    }
    expect(await readdir(sandbox.root)).toEqual(["Cafe\u0301"]);
    expect(await readFile(path.join(sandbox.root, real), "utf8")).toBe("three\n");
  });

  it("is not taken if there are two, and the exact one always is", async () => {
    await put("a\u00A0b.txt", "one\n");
    await put("a\u202Fb.txt", "two\n");
    expect((await call("read_file", { path: "a b.txt" })).outcome).toBe("error");
    expect((await call("read_file", { path: "a\u00A0b.txt" })).text).toBe("1\tone");
    expect((await call("write_file", { path: "a b.txt", content: "three\n" })).text).toContain("Created");
  });
});
