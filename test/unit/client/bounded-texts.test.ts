/** Files and streams of this machine that never end, or that nobody writes, hold up no command. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { readConfigFiles } from "../../../client/config/config-files.ts";
import { readDevcontainer } from "../../../client/config/devcontainer.ts";
import { readBoundedText } from "../../../client/console/read-bounded-text.ts";
import { readTask, type Stdin } from "../../../client/sessions/task-input.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "longhaul-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

const traps: readonly (readonly [string, (path: string) => unknown, RegExp])[] = [
  ["a link to a device without an end", (path) => symlinkSync("/dev/zero", path), /is no regular file/],
  ["a pipe that nobody writes", (path) => execFileSync("mkfifo", [path]), /is no regular file/],
  ["a folder", (path) => mkdirSync(path), /is a folder/],
  ["a file of 9 MiB", (path) => writeFileSync(path, "#".repeat(9 * 2 ** 20)), /is too large/],
];

describe.each(traps)("%s", (_what, make, words) => {
  it("in the place of a repository's longhaul.yaml is refused", () => {
    const cwd = folder();
    make(join(cwd, "longhaul.yaml"));
    expect(() => readConfigFiles({}, {}, cwd)).toThrow(words);
  });

  it("in the place of devcontainer.json is refused", () => {
    const workspace = folder();
    mkdirSync(join(workspace, ".devcontainer"));
    make(join(workspace, ".devcontainer", "devcontainer.json"));
    expect(() => readDevcontainer(workspace)).toThrow(words);
  });
});

it("a file that a person names may be a pipe, and has an end", () => {
  const path = join(folder(), "pipe");
  execFileSync("bash", ["-c", 'mkfifo "$1"; (echo "model: x" > "$1") > /dev/null 2>&1 &', "-", path]);
  expect(readBoundedText(path, { pipes: true })).toBe("model: x\n");
  expect(() => readBoundedText("/dev/zero", { pipes: true })).toThrow(/EFBIG/);
});

it.each<Stdin["kind"]>(["pipe", "file", "socket"])(
  "standard input that never ends is refused: a %s",
  async (kind) => {
    for (const words of [["-"], ["Do it"]]) {
      const stream = Readable.from(endless());
      await expect(readTask(words, { kind, stream }, () => undefined)).rejects.toThrow(
        /characters arrive on stdin/,
      );
      expect(stream.destroyed).toBe(true);
    }
  },
);

function* endless(): Generator<Buffer> {
  const piece = Buffer.alloc(2 ** 16, "y\n");
  for (;;) yield piece;
}
