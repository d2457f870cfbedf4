/** Checkouts in which what Git stores of a file is not the file's bytes: a session's change applies all the same. */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { applyOnBranch } from "../../../client/workspace/apply-on-branch.ts";
import { diffWorkspaces } from "../../../client/workspace/workspace-diff.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gitIn } from "../../support/remotes.ts";
import { file } from "../../support/workspace-file.ts";

interface Kind {
  readonly attributes?: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** What a person has in the working tree. */
  readonly written: (text: string) => Buffer;
}

const crlf = (text: string) => Buffer.from(text.replaceAll("\n", "\r\n"));
const PLAIN: Kind = { written: (text) => Buffer.from(text) };
const FILTER: Kind = {
  attributes: "*.txt filter=rot\n",
  settings: {
    "filter.rot.clean": "tr a-z n-za-m",
    "filter.rot.smudge": "tr n-za-m a-z",
    "filter.rot.required": "true",
  },
  written: PLAIN.written,
};

const KINDS: Readonly<Record<string, Kind>> = {
  plain: PLAIN,
  "eol=crlf": { attributes: "* text eol=crlf\n.gitattributes -text\n", written: crlf },
  "core.autocrlf": {
    attributes: ".gitattributes -text\n",
    settings: { "core.autocrlf": "true" },
    written: crlf,
  },
  ident: { attributes: "* ident\n", written: (text) => Buffer.from(text) },
  "an encoding": {
    attributes: "*.txt working-tree-encoding=UTF-16LE text\n",
    written: (text) => Buffer.from(text, "utf16le"),
  },
  "a filter": FILTER,
};

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

/** A clean checkout of these texts. */
function checkout(
  { attributes = "", settings = {}, written }: Kind,
  texts: Readonly<Record<string, string>>,
) {
  gitIn(folder, "init", "-q", "-b", "main");
  for (const [key, value] of Object.entries({ "user.name": "Ada", "user.email": "a@b.org", ...settings }))
    gitIn(folder, "config", key, value);
  writeFileSync(join(folder, ".gitattributes"), attributes);
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), written(text));
  gitIn(folder, "add", "-A");
  gitIn(folder, "commit", "-q", "-m", "Begin");
  // As a clone has it: with identifiers expanded.
  for (const name of Object.keys(texts)) rmSync(join(folder, name));
  gitIn(folder, "checkout", "-q", "--", ".");
  expect(gitIn(folder, "status", "--porcelain")).toBe("");
}

const bytes = (name: string) => readFileSync(join(folder, name));
const apply = (before: Readonly<Record<string, Buffer>>, after: Readonly<Record<string, Buffer>>) => {
  const files = (state: Readonly<Record<string, Buffer>>) =>
    Object.entries(state).map(([name, content]) => file(name, content));
  const { patch } = diffWorkspaces(files(before), files(after), { binaries: "bytes" });
  return applyOnBranch(folder, { patch, branch: "work", message: "Work" });
};

describe.each(Object.entries(KINDS))("a change in a checkout with %s", (_, kind) => {
  it("of the files as they were copied in leaves their bytes, and nothing uncommitted", async () => {
    checkout(kind, { "a.txt": "one\ntwo $Id$\nthree\n", "gone.txt": "g\n", "other.txt": "o\n" });
    const before = { "a.txt": bytes("a.txt"), "gone.txt": bytes("gone.txt") };
    const last = kind.written("three\n");
    const changed = Buffer.concat([bytes("a.txt").subarray(0, -last.length), kind.written("new\nlast\n")]);
    const after = { "a.txt": changed, "new.txt": kind.written("fresh\n") };
    expect(await apply(before, after)).toEqual({ committed: true });
    expect(bytes("a.txt").equals(changed)).toBe(true);
    expect(bytes("new.txt").equals(kind.written("fresh\n"))).toBe(true);
    expect(existsSync(join(folder, "gone.txt"))).toBe(false);
    expect(gitIn(folder, "status", "--porcelain")).toBe("");
    // Git sees no more than the lines that changed.
    expect(gitIn(folder, "diff", "--numstat", "main", "HEAD", "--", "a.txt")).toMatch(/^(2\t1|-\t-)\ta.txt$/);
    rmSync(join(folder, "a.txt"));
    gitIn(folder, "checkout", "-q", "--", "a.txt");
    if (!String(changed).includes("$Id")) expect(bytes("a.txt").equals(changed)).toBe(true);
  });

  it("of the files as Git stores them is checked out through the filters", async () => {
    checkout(kind, { "a.txt": "one\ntwo\n" });
    const stored = (name: string) => Buffer.from(`${gitIn(folder, "cat-file", "blob", `:${name}`)}\n`);
    const before = stored("a.txt");
    const after = Buffer.concat([before, Buffer.from("line\n")]);
    expect(await apply({ "a.txt": before }, { "a.txt": after })).toEqual({ committed: true });
    expect(gitIn(folder, "status", "--porcelain")).toBe("");
    expect(stored("a.txt").equals(after)).toBe(true);
  });

  it("is refused if the file has an uncommitted change, and leaves it", async () => {
    checkout(kind, { "a.txt": "one\n", "b.txt": "b\n" });
    const before = bytes("a.txt");
    const mine = Buffer.concat([before, kind.written("mine\n")]);
    writeFileSync(join(folder, "a.txt"), mine);
    const change = apply({ "a.txt": before }, { "a.txt": kind.written("other\n") });
    await expect(change).rejects.toMatchObject({ exitCode: 5 });
    expect(bytes("a.txt").equals(mine)).toBe(true);
    expect(gitIn(folder, "symbolic-ref", "--short", "HEAD")).toBe("main");
  });
});

it("what any mixture of kinds and changes makes of a checkout is the session's bytes", async () => {
  const names = ["a.txt", "b.txt", "c.bin"];
  const content = fc
    .array(fc.constantFrom("alpha", "beta", "", "delta x"), { minLength: 1, maxLength: 6 })
    .map((lines) => `${lines.join("\n")}\n`);
  const state = fc.record(
    Object.fromEntries(names.map((name) => [name, fc.option(content, { nil: undefined })])),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.values(KINDS)),
      fc.record(Object.fromEntries(names.map((name) => [name, content]))),
      state,
      async (kind, start, end) => {
        folder = emptyFolder();
        checkout(kind, start);
        const before = Object.fromEntries(names.map((name) => [name, bytes(name)]));
        const written = (name: string, text: string) =>
          name.endsWith(".bin") && !/crlf/.test(JSON.stringify(kind))
            ? Buffer.from(text)
            : kind.written(text);
        const after = Object.fromEntries(
          Object.entries(end).flatMap(([name, text]) =>
            text === undefined ? [] : [[name, written(name, text)]],
          ),
        );
        if (names.every((name) => after[name]?.equals(before[name] ?? Buffer.alloc(0)) === true)) return;
        expect(await apply(before, after)).toEqual({ committed: true });
        for (const name of names)
          expect(existsSync(join(folder, name)) ? bytes(name) : undefined).toEqual(after[name]);
        expect(gitIn(folder, "status", "--porcelain")).toBe("");
      },
    ),
    { numRuns: 15 },
  );
});

it("what Git refuses to stage leaves the checkout as it was", async () => {
  checkout(FILTER, {
    "a.txt": "one\n",
    "b.txt": "b\n",
  });
  gitIn(folder, "config", "filter.rot.clean", "false");
  const before = bytes("a.txt");
  const change = apply(
    { "a.txt": before, "b.txt": bytes("b.txt") },
    { "a.txt": Buffer.from("two\n"), "n/n.txt": before },
  );
  await expect(change).rejects.toThrow(/clean filter 'rot' failed/);
  expect([bytes("a.txt").equals(before), existsSync(join(folder, "n/n.txt"))]).toEqual([true, false]);
  expect(gitIn(folder, "branch", "--format=%(refname:short)")).toBe("main");
  gitIn(folder, "config", "filter.rot.clean", "tr a-z n-za-m");
  expect(gitIn(folder, "status", "--porcelain")).toBe("");
});

it("what Git does not commit is staged, with Git's words and a message to finish with", async () => {
  checkout(PLAIN, { "a.txt": "one\n" });
  const signer = join(emptyFolder(), "gpg");
  writeFileSync(signer, "#!/bin/sh\necho 'gpg: no pinentry' >&2\nexit 2\n");
  chmodSync(signer, 0o755);
  gitIn(folder, "config", "gpg.program", signer);
  gitIn(folder, "config", "commit.gpgsign", "true");
  const applied = await apply({ "a.txt": bytes("a.txt") }, { "a.txt": Buffer.from("two\n") });
  if (applied.committed) throw new Error("It was committed.");
  expect(applied.why).toMatch(/gpg failed to sign the data/);
  expect(gitIn(folder, "status", "--porcelain")).toBe("M  a.txt");
  gitIn(folder, "config", "commit.gpgsign", "false");
  gitIn(folder, "commit", "-q", "-F", applied.messageFile);
  expect(gitIn(folder, "log", "-1", "--format=%s")).toBe("Work");
});

it("a difference of line ends alone is none: nothing is committed, and that is said", async () => {
  checkout(PLAIN, { "a.txt": "one\n" });
  gitIn(folder, "config", "core.autocrlf", "input");
  await expect(apply({ "a.txt": bytes("a.txt") }, { "a.txt": Buffer.from("one\r\n") })).rejects.toThrow(
    /Git stores the same as before/,
  );
  expect(String(bytes("a.txt"))).toBe("one\n");
  expect(gitIn(folder, "branch", "--format=%(refname:short)")).toBe("main");
});
