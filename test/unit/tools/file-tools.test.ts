import { readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../../activities/config/run-policy.ts";
import type { ToolContext } from "../../../activities/tools/tool.ts";
import { callTool, useFakeSandbox, putFile } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const put = (name: string, content: string | Uint8Array) => putFile(sandbox, name, content);
/** What a call shows the model. */
const shown = async (name: string, input: unknown, overrides?: Partial<ToolContext>) =>
  (await callTool(sandbox, name, input, overrides)).text;

describe("read_file", () => {
  it("numbers the lines and pages with offset and limit", async () => {
    await put("a.txt", Array.from({ length: 5_000 }, (_value, index) => `line ${index + 1}`).join("\n"));
    const first = await callTool(sandbox, "read_file", { path: "a.txt" });
    expect(first.text.startsWith("1\tline 1\n2\tline 2\n")).toBe(true);
    expect(first.text).toContain("2000\tline 2000\n\n(lines 1-2000 of a file of");
    expect(first.text).toContain("continue with offset=2001");
    const last = await callTool(sandbox, "read_file", { path: "a.txt", offset: 4_999, limit: 10 });
    expect(last.text).toBe("4999\tline 4999\n5000\tline 5000\n\n(end of the file: 5000 lines)");
    expect(await shown("read_file", { path: "a.txt", offset: 5_001 })).toContain("has 5000 lines");
  });

  it("returns exactly the file's lines if their number is the limit", async () => {
    await put("a.txt", "1\n2\n3\n");
    expect(await shown("read_file", { path: "a.txt", limit: 3 })).toBe("1\t1\n2\t2\n3\t3");
    expect(await shown("read_file", { path: "a.txt", limit: 2 })).toContain("offset=3");
  });

  it(
    "cuts a line of more than 2,000 characters on a code point and states its length",
    { tags: ["R28"] },
    async () => {
      await put("a.txt", `${"x".repeat(1_999)}😀${"y".repeat(60_000)}\nnext\n`);
      const { text } = await callTool(sandbox, "read_file", { path: "a.txt" });
      expect(text).toMatch(/^1\tx{1999}… \[line cut: 62,001 characters\]\n2\tnext$/);
    },
  );

  it("stops at whole lines below the character limit, so that paging misses nothing", async () => {
    await put("a.txt", `${"z".repeat(1_500)}\n`.repeat(300));
    const { text, truncated } = await callTool(sandbox, "read_file", { path: "a.txt" });
    expect(truncated).toBe(false);
    const next = Number(/offset=(\d+)/.exec(text)?.[1]);
    expect(text).toContain(`${next - 1}\tz`);
    expect(text).not.toContain(`\n${next}\tz`);
  });

  it("reads lines far into a large file, to its end and no further", async () => {
    await put("a.txt", Array.from({ length: 300_000 }, (_value, index) => `line ${index + 1}\n`).join(""));
    const read = async (offset: number, limit?: number): Promise<string> =>
      await shown("read_file", { path: "a.txt", offset, limit });
    expect(await read(200_000, 2)).toContain(
      "200000\tline 200000\n200001\tline 200001\n\n(lines 200000-200001",
    );
    expect(await read(299_999)).toBe(
      "299999\tline 299999\n300000\tline 300000\n\n(end of the file: 300000 lines)",
    );
    expect(await read(300_001)).toContain("has 300000 lines");
    await put("b.txt", `${"short\n".repeat(200_000)}${"x".repeat(9_000_000)}\nlast\n`);
    expect(await shown("read_file", { path: "b.txt", offset: 200_001 })).toContain("line 200001 continues");
  });

  it("stops reading an endless line", { tags: ["R28"] }, async () => {
    await put("a.txt", "x".repeat(12_000_000));
    expect(await shown("read_file", { path: "a.txt" })).toContain("line 1 continues");
  });

  it("shows a text with some zero bytes, and says so; of data it says that it is", async () => {
    await put("one", "int a;\nint\0 b;\n");
    expect(await shown("read_file", { path: "one" })).toBe(
      "1\tint a;\n2\tint\0 b;\n\n(1 zero byte, shown as \u2400)",
    );
    // What lies on another page is said there.
    expect(await shown("read_file", { path: "one", limit: 1 })).not.toContain("zero byte");
    await put("names", "src/a.c\0src/b.c\0");
    expect(await shown("read_file", { path: "names" })).toContain("2 zero bytes");
    await put("long", `${"a line of text\n".repeat(100)}\0\n${"a line of text\n".repeat(100_000)}`);
    expect(await shown("read_file", { path: "long", offset: 101, limit: 1 })).toContain("1 zero byte");
    for (const data of ["\0\0\0\0", "\0\u0001\u0002\u0003PK\u0001", `ELF${"\0".repeat(40)}\u0001abcdefgh`]) {
      await put("data", data);
      expect(await shown("read_file", { path: "data" })).toContain("binary file");
    }
  });

  it("describes a binary file, an image, an empty file and a folder", async () => {
    await put("b", Buffer.from("\u0001\u00fea\u0000b\u00c3", "latin1"));
    await put("i.txt", Buffer.from("89504e470d0a1a0a0000", "hex"));
    await put("e", "");
    await put("d/x", "");
    expect(await shown("read_file", { path: "b" })).toContain("binary file (6 B)");
    expect(await shown("read_file", { path: "i.txt" })).toContain("view_image");
    expect(await callTool(sandbox, "read_file", { path: "e" })).toMatchObject({
      outcome: "completed",
      text: "(e is empty)",
    });
    expect(await shown("read_file", { path: "d" })).toContain("list_directory");
    expect(await shown("read_file", { path: "nope" })).toContain("glob_files");
  });

  it("reports CRLF, and shows the bytes that are not UTF-8 in a file that is", async () => {
    await put(
      "a.txt",
      Buffer.concat([Buffer.from("caf\u00e9, th\u00e9 \u65e5\u672c\r\nb\r\n"), Buffer.from([0xe9])]),
    );
    const { text } = await callTool(sandbox, "read_file", { path: "a.txt" });
    expect(text).toMatch(/^1\tcaf\u00e9.*\n2\tb\n3\t\uFFFD\n\n\(lines end in CRLF; not UTF-8 text/);
  });
});

describe("write_file", () => {
  it("creates folders, and says whether it created or replaced the file", async () => {
    expect(await shown("write_file", { path: "a/b/c.txt", content: "1\n2\n" })).toBe(
      "Created a/b/c.txt (2 lines, 4 B).",
    );
    expect(await shown("write_file", { path: "a/b/c.txt", content: "" })).toContain("Replaced");
  });

  it("refuses a placeholder for existing content, and keeps the file", async () => {
    await put("a.ts", "1\n2\n3\n");
    const result = await callTool(sandbox, "write_file", {
      path: "a.ts",
      content: "1\n// ... rest of the file unchanged\n",
    });
    expect(result).toMatchObject({ outcome: "error" });
    expect(await readFile(path.join(sandbox.root, "a.ts"), "utf8")).toBe("1\n2\n3\n");
  });
});

it("edit_file refuses a file that is not UTF-8, which it would damage", async () => {
  const bytes = Buffer.from("caf\u00e9", "latin1");
  await put("a.txt", bytes);
  expect(await shown("edit_file", { path: "a.txt", old_string: "caf", new_string: "x" })).toContain(
    "not UTF-8",
  );
  expect(await readFile(path.join(sandbox.root, "a.txt"))).toEqual(bytes);
});

it("list_directory lists folders first, shows sizes and link targets, and limits the number", async () => {
  await put("z/x", "");
  await put("b.txt", "12345");
  await symlink("b.txt", path.join(sandbox.root, "a"));
  await put('n\n"q', "");
  expect(await shown("list_directory", {})).toBe('z/\na -> b.txt\nb.txt  5 B\n"n\\n\\"q"  0 B');
  const limits = { ...defaultLimits("list_directory"), maxMatches: 2 };
  expect(await shown("list_directory", {}, { limits })).toContain("(2 more entries");
  expect(await shown("list_directory", { path: "b.txt" })).toContain("read_file");
  expect((await callTool(sandbox, "list_directory", { path: "../.." })).outcome).toBe("error");
});
