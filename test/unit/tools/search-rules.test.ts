/** What the searching tools look at: what git would, and what is named; what is left out is said. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { globList } from "../../../activities/tools/folder-walk.ts";
import { callTool, putFile, useFakeSandbox } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const put = (name: string, content: string | Uint8Array = "needle\n") => putFile(sandbox, name, content);
const git = (...args: string[]): string =>
  execFileSync("git", ["-C", sandbox.root, "-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
    encoding: "utf8",
  });
const shown = async (name: string, input: unknown) => (await callTool(sandbox, name, input)).text;
/** The files that a search shows. */
const globbed = async (pattern: string, path?: string): Promise<string[]> =>
  (await shown("glob_files", { pattern, path }))
    .split("\n")
    .filter((line) => !line.startsWith("("))
    .toSorted();
const searched = async (input: object): Promise<string[]> =>
  (await shown("grep_content", { pattern: "needle", ...input }))
    .split("\n")
    .filter((line) => line !== "" && !/^\d+: |^\(/.test(line));

/** A repository whose rules are case-sensitive, nested, and broken by tracked files. */
async function layRepository(): Promise<void> {
  await put(".gitignore", "core\nbuild/\n*.log\n.env*\n!/keep.log\n");
  await put("sub/.gitignore", "local\n");
  for (const name of [
    "Core/engine.c",
    "core/x.c",
    "build/app.js",
    "build/deep/b.js",
    "a.log",
    "keep.log",
    ".env.local",
  ])
    await put(name);
  for (const name of [
    "sub/local",
    "sub/BUILD/x",
    "local",
    "dist/app.js",
    "src/a.ts",
    "src/b.js",
    "src/c.tsx",
  ])
    await put(name);
  await put("node_modules/m/i.js");
  await put("build/tracked.js");
  git("init", "-q");
  git("add", "-A");
  git("add", "-f", "build/tracked.js");
}

const LISTED = [
  ".gitignore",
  "Core/engine.c",
  "build/tracked.js",
  "dist/app.js",
  "keep.log",
  "local",
  "src/a.ts",
  "src/b.js",
  "src/c.tsx",
  "sub/.gitignore",
  "sub/BUILD/x",
];

describe("glob_files and grep_content in a repository", () => {
  it.each(["**/*", "**", "*", "./**/*", "/workspace/**"])("show for %s what git does", async (pattern) => {
    await layRepository();
    git("rm", "-rq", "--cached", "node_modules");
    expect(await globbed(pattern)).toEqual(LISTED);
    expect(await searched({ include: pattern })).toEqual(
      LISTED.filter((name) => !name.endsWith(".gitignore")),
    );
  });

  it("say what they left out, also where nothing is found", async () => {
    await layRepository();
    const words = /Left out by ignore rules: \.env\.local, a\.log, build\/app\.js, build\/deep\/ and 2 more/;
    expect(await shown("glob_files", { pattern: "*.none" })).toMatch(words);
    expect(await shown("grep_content", { pattern: "nowhere" })).toMatch(words);
    expect(await shown("grep_content", { pattern: "needle" })).toContain(
      "(Left out by ignore rules: 6 entries)",
    );
  });

  it("look at what is named, whatever the rules say", async () => {
    await layRepository();
    expect(await globbed("build/**/*.js")).toEqual(["build/app.js", "build/deep/b.js", "build/tracked.js"]);
    expect(await globbed(".env.local")).toEqual([".env.local"]);
    expect(await globbed("**/core/*.c")).toEqual(["core/x.c"]);
    expect(await globbed("*", "core")).toEqual(["core/x.c"]);
    expect(await globbed("*.js", "node_modules")).toEqual(["node_modules/m/i.js"]);
    expect(await searched({ path: "core" })).toEqual(["core/x.c"]);
    expect(await searched({ path: "a.log" })).toEqual(["a.log"]);
    expect(await searched({ include: "a.log" })).toEqual(["a.log"]);
  });

  it("take the rules of the repository above a folder, and of each one below", async () => {
    await layRepository();
    await put("sub/deep/x.log");
    await put("sub/deep/y");
    expect(await globbed("*", "sub/deep")).toEqual(["sub/deep/y"]);
    await put("inner/.gitignore", "z\n");
    await put("inner/z");
    await put("inner/w");
    execFileSync("git", ["-C", `${sandbox.root}/inner`, "init", "-q"]);
    expect(await globbed("inner/**")).toEqual(["inner/.gitignore", "inner/w"]);
  });

  it("show no file that is tracked and gone, and search no link", async () => {
    await layRepository();
    execFileSync("rm", [`${sandbox.root}/src/a.ts`]);
    execFileSync("ln", ["-s", "/etc/passwd", `${sandbox.root}/src/link`]);
    expect(await globbed("src/*")).toEqual(["src/b.js", "src/c.tsx", "src/link"]);
    expect(await shown("grep_content", { pattern: "root:" })).toContain("No line matches");
  });

  it("agree with git about a generated tree", async () => {
    const parts = ["core", "Core", "build", "Build", "logs", "a b", "\u00FC", "x&y", "[z]", "q\\r"];
    const kinds = ["a.c", "b.log", "BUILD", "core", ".env", "t.tmp"];
    await put(".gitignore", "core\n*.log\n/build/\n!b.log\n");
    await put("Core/.gitignore", "*.tmp\n!core\n");
    for (const one of parts)
      for (const two of parts) for (const kind of kinds) await put(`${one}/${two}/${kind}`, "");
    git("init", "-q");
    git("add", "-f", "core/Core/a.c", "build/build/b.log");
    const expected = git("ls-files", "-z", "-co", "--exclude-standard")
      .split("\0")
      .filter((name) => name !== "");
    const { text } = await callTool(sandbox, "glob_files", { pattern: "**" });
    const names = text
      .split("\n")
      .filter((line) => !line.startsWith("("))
      .map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line));
    expect(expected.length).toBeGreaterThan(300);
    expect(names.toSorted()).toEqual(expected.toSorted());
  }, 30_000);
});

describe("grep_content", () => {
  it("searches text with zero bytes, and names binary files that match", async () => {
    await put("a.c", "int needle;\nx\0y needle\n");
    await put("logs/b.log", `${"\0".repeat(8)}\nneedle here\n`);
    await put(
      "c.bin",
      Buffer.concat([Buffer.from([1, 2, 0, 255, 254, 1, 2, 3]), Buffer.from("needle"), Buffer.alloc(40, 2)]),
    );
    const text = await shown("grep_content", { pattern: "needle" });
    expect(text).toContain("a.c\n1: int needle;\n2: x");
    expect(text).toContain("logs/b.log\n2: needle here");
    expect(text).toContain("(Binary files that match, not shown: c.bin)");
    expect(await shown("grep_content", { pattern: "needle", path: "a.c" })).toContain("1: int needle;");
  });

  it("searches UTF-16 with and without a mark, in a folder and by name", async () => {
    const wide = (text: string, order: "le" | "be", mark = "") => {
      const bytes = Buffer.from(mark + text, "utf16le");
      return order === "le" ? bytes : bytes.swap16();
    };
    const text = "first\nneedle 日本, ändern 😀\n";
    await put("le.txt", wide(text, "le"));
    await put("be.txt", wide(text, "be"));
    await put("large.txt", wide(`${"a line 😀 of text\n".repeat(2_000)}needle\n`, "le"));
    await put("none.txt", wide("other\n", "le"));
    const found = await shown("grep_content", { pattern: "needle" });
    for (const name of ["le.txt", "be.txt"]) expect(found).toContain(`${name}\n2: needle 日本, ändern 😀`);
    expect(found).toContain("large.txt\n2001: needle");
    expect(found).not.toContain("none.txt");
    expect(found).not.toContain("Binary");
    for (const path of ["le.txt", "be.txt"])
      for (const pattern of ["^needle", "日本", "ä"])
        expect(await shown("grep_content", { pattern, path })).toBe(`${path}\n2: needle 日本, ändern 😀`);
  });

  it("says where a pattern beyond ASCII cannot be found by its bytes", async () => {
    await put("latin.txt", Buffer.from("äpfel, needle\n", "latin1"));
    await put("utf8.txt", "äpfel, needle\n");
    expect(await shown("grep_content", { pattern: "äpfel" })).toBe(
      "utf8.txt\n1: äpfel, needle\n(Could not be looked at: ./latin.txt: not UTF-8, so only ASCII is found in it)",
    );
    expect(await shown("grep_content", { pattern: "äpfel", path: "latin.txt" })).toMatch(
      /^No line matches äpfel in latin\.txt\.\n\(Could not.*not UTF-8/,
    );
    const plain = await shown("grep_content", { pattern: "needle" });
    expect(plain).toContain("latin.txt\n1: ");
    expect(plain).not.toContain("not UTF-8");
  });

  it.each([
    "*.ts,*.js",
    "*.ts, *.js",
    "*.ts;*.js",
    "*.ts|*.js",
    "*.ts *.js",
    "*.{ts,js}",
    '["*.ts", "*.js"]',
    "./src/*.ts,src/*.js",
  ])("takes %s for two patterns", async (include) => {
    for (const name of ["src/a.ts", "src/b.js", "src/c.py"]) await put(name);
    expect(await searched({ include })).toEqual(["src/a.ts", "src/b.js"]);
  });

  it("takes a pattern relative to the folder or to the workspace", async () => {
    for (const name of ["gi/src/a.ts", "gi/src/b.py"]) await put(name);
    for (const include of ["./gi/src/*.ts", "/workspace/gi/src/*.ts", "src/*.ts", "*.ts,!b*"])
      expect(await searched({ path: "gi", include }), include).toEqual(["gi/src/a.ts"]);
  });

  it("says that nothing was searched if no file is left", async () => {
    await put("a.ts");
    expect(await shown("grep_content", { pattern: "needle", include: "*.rb" })).toBe(
      "No file was searched: none matches *.rb.",
    );
  });
});

it("a pattern's names are those without wildcards", () => {
  expect(globList("build/{a,b*}/*.js,.env", ".").named.split("\n")).toEqual(["build", "a", ".env"]);
});
