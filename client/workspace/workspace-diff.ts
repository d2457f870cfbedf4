/** The change between two states of a workspace as a patch for `git apply`, and such a patch split by file. */
import { structuredPatch } from "diff";
import { hasRunnerCommand } from "../console/runner-commands.ts";
import { bytesOfText } from "../../activities/store/path-text.ts";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { ignoredAmong } from "./git-rules.ts";
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

/** If comparing a file takes longer, it is shown as replaced. */
const DIFF_TIMEOUT_MS = 2_000;

export interface WorkspaceDiff {
  readonly patch: string;
  readonly changed: number;
  /** New files that Git would leave out. */
  readonly ignored: readonly string[];
  /** Files in Git's binary form because of what a build's runner would read in them. */
  readonly inert?: readonly string[];
}

type Content = Extract<WorkspaceFile, { kind: "file" | "link" }>;

export interface DiffOptions {
  /** `bytes`: both states of a binary file, so that the patch can be applied; `named`: only that they differ, for people. */
  readonly binaries: "bytes" | "named";
  /**
   * Whether a build's runner reads the patch: then nothing in it has the form of a runner's command. Such a text is in Git's
   * binary form, and such a name in its escapes, so that the patch can still be applied.
   */
  readonly isRead?: boolean;
}

/**
 * Omits `.git`, and of what is new what Git leaves out by the new state's own rules.
 * @throws ClientError (missing) without Git
 */
export function diffWorkspaces(
  before: readonly WorkspaceFile[],
  after: readonly WorkspaceFile[],
  options: DiffOptions,
): WorkspaceDiff {
  const contents = (files: readonly WorkspaceFile[]) =>
    new Map(
      files
        .filter((file): file is Content => file.kind !== "folder" && !file.path.split("/").includes(".git"))
        .map((file) => [file.path, file]),
    );
  const [old, fresh] = [contents(before), contents(after)];
  // What is ignored and was there at the start is tracked, or was not ignored then.
  const ignored = [...ignoredAmong(after)].filter((path) => !old.has(path));
  for (const path of ignored) fresh.delete(path);
  const paths = [...new Set([...old.keys(), ...fresh.keys()])].toSorted();
  const inert: string[] = [];
  const pieces = paths.flatMap((path) => {
    const [before, after] = [old.get(path), fresh.get(path)];
    const piece = diffPath(path, before, after, options);
    if (options.isRead !== true || !hasRunnerCommand(piece)) return piece === "" ? [] : [piece];
    inert.push(path);
    return [diffPath(path, before, after, { ...options, asBinary: true })];
  });
  return {
    patch: pieces.join(""),
    changed: pieces.length,
    ignored: ignored.toSorted(),
    inert: inert.length > 0 ? inert : undefined,
  };
}

interface PieceOptions extends DiffOptions {
  readonly asBinary?: boolean;
}

/** If a file becomes a link or a link a file, the patch removes one and adds the other: Git refuses a change of mode. */
function diffPath(
  path: string,
  before: Content | undefined,
  after: Content | undefined,
  options: PieceOptions,
): string {
  if (before === undefined || after === undefined || before.kind === after.kind)
    return diffFile(path, before, after, options);
  return diffFile(path, before, undefined, options) + diffFile(path, undefined, after, options);
}

function diffFile(
  path: string,
  before: Content | undefined,
  after: Content | undefined,
  { binaries, asBinary = false }: PieceOptions,
): string {
  const quoted = (name: string) => quotedName(name, asBinary);
  const [oldBytes, newBytes] = [bytesOf(before), bytesOf(after)];
  const oldMode = before === undefined ? undefined : modeOf(before);
  const newMode = after === undefined ? undefined : modeOf(after);
  if (oldBytes.equals(newBytes) && oldMode === newMode && (before === undefined) === (after === undefined))
    return "";
  const head = [`diff --git ${quoted(`a/${path}`)} ${quoted(`b/${path}`)}`];
  if (oldMode === undefined) head.push(`new file mode ${newMode}`);
  else if (newMode === undefined) head.push(`deleted file mode ${oldMode}`);
  else if (oldMode !== newMode) head.push(`old mode ${oldMode}`, `new mode ${newMode}`);
  const from = before === undefined ? "/dev/null" : quoted(`a/${path}`);
  const to = after === undefined ? "/dev/null" : quoted(`b/${path}`);
  if (oldBytes.equals(newBytes)) return `${head.join("\n")}\n`;
  if (asBinary || isBinary(oldBytes) || isBinary(newBytes)) {
    if (binaries === "named") return `${head.join("\n")}\nBinary files ${from} and ${to} differ\n`;
    const names = blobNames(before && oldBytes, after && newBytes);
    head.push(`index ${names}${oldMode === newMode ? ` ${oldMode}` : ""}`);
    return `${head.join("\n")}\n${binaryPatch(oldBytes, newBytes)}`;
  }
  return `${head.join("\n")}\n--- ${ended(from)}\n+++ ${ended(to)}\n${hunksOf(oldBytes.toString("utf8"), newBytes.toString("utf8"))}`;
}

/** A tab marks the end of a name with spaces. */
const ended = (name: string) => (name.includes(" ") ? `${name}\t` : name);

function hunksOf(before: string, after: string): string {
  const patch = structuredPatch("a", "b", before, after, "", "", { context: 3, timeout: DIFF_TIMEOUT_MS });
  const hunks = patch?.hunks ?? [replacedWhole(before, after)];
  return hunks
    .map(({ oldStart, oldLines, newStart, newLines, lines }) => {
      // A side without lines is numbered by the line before it.
      const old =
        oldLines === 0 ? Math.max(0, oldStart - (oldStart > 0 && before === "" ? oldStart : 0)) : oldStart;
      const fresh = newLines === 0 && after === "" ? 0 : newStart;
      return `@@ -${old},${oldLines} +${fresh},${newLines} @@\n${lines.join("\n")}\n`;
    })
    .join("");
}

function replacedWhole(before: string, after: string) {
  const linesOf = (text: string, sign: string) => {
    if (text === "") return { count: 0, lines: [] };
    const whole = text.endsWith("\n");
    const lines = (whole ? text.slice(0, -1) : text).split("\n").map((line) => sign + line);
    return { count: lines.length, lines: whole ? lines : [...lines, "\\ No newline at end of file"] };
  };
  const [old, fresh] = [linesOf(before, "-"), linesOf(after, "+")];
  return {
    oldStart: old.count === 0 ? 0 : 1,
    oldLines: old.count,
    newStart: fresh.count === 0 ? 0 : 1,
    newLines: fresh.count,
    lines: [...old.lines, ...fresh.lines],
  };
}

function bytesOf(file: Content | undefined): Buffer {
  if (file === undefined) return Buffer.alloc(0);
  return file.kind === "link" ? bytesOfText(file.target) : Buffer.from(file.bytes);
}

/** git knows three modes. */
function modeOf(file: Content): string {
  if (file.kind === "link") return "120000";
  return (file.mode & 0o111) === 0 ? "100644" : "100755";
}

/** Git's rule: a NUL in the first 8,000 bytes. Invalid UTF-8 cannot be shown as text either. */
function isBinary(bytes: Buffer): boolean {
  if (bytes.subarray(0, 8_000).includes(0)) return true;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return false;
  } catch {
    return true;
  }
}

/** Names with quotes, backslashes, control characters or invalid UTF-8, as git writes them. @param all escapes every sign */
function quotedName(path: string, all: boolean): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what this is about
  if (!all && path.isWellFormed() && !/["\\\u0000-\u001f\u007f-\u009f]/.test(path)) return path;
  const plain = all ? /[\w./-]/ : /[ !#-[\]-~]/;
  const signs = [...bytesOfText(path)].map((byte) => {
    const sign = String.fromCharCode(byte);
    if (plain.test(sign)) return sign;
    return sign === '"' || sign === "\\" ? `\\${sign}` : `\\${byte.toString(8).padStart(3, "0")}`;
  });
  return `"${signs.join("")}"`;
}

/** Git's base-85 alphabet. Source: base85.c. */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
const BYTES_PER_LINE = 52;
const NO_BLOB = "0".repeat(40);

/** The two blob names of the `index` line. `git apply` compares them with the current file; undefined = no file. */
function blobNames(before: Buffer | undefined, after: Buffer | undefined): string {
  return `${blobName(before)}..${blobName(after)}`;
}

function blobName(bytes: Buffer | undefined): string {
  if (bytes === undefined) return NO_BLOB;
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

/** The body of a patch, in both directions. */
function binaryPatch(before: Buffer, after: Buffer): string {
  return `GIT binary patch\n${literal(after)}\n${literal(before)}\n`;
}

function literal(bytes: Buffer): string {
  const packed = deflateSync(bytes);
  const lines = [`literal ${bytes.length}\n`];
  for (let at = 0; at < packed.length; at += BYTES_PER_LINE)
    lines.push(line(packed.subarray(at, at + BYTES_PER_LINE)));
  return lines.join("");
}

/** A line's first letter is its number of bytes: A–Z for 1–26, a–z for 27–52. Four bytes become five letters. */
function line(bytes: Buffer): string {
  const count = bytes.length;
  let text = String.fromCharCode(count <= 26 ? 64 + count : 70 + count);
  for (let at = 0; at < count; at += 4) {
    let word = 0;
    for (let next = at; next < at + 4; next += 1) word = word * 256 + (bytes[next] ?? 0);
    let letters = "";
    for (let digit = 0; digit < 5; digit += 1) {
      letters = (ALPHABET[word % 85] ?? "") + letters;
      word = Math.floor(word / 85);
    }
    text += letters;
  }
  return `${text}\n`;
}

/** One file of a patch, with the lines added to and removed from it. */
export interface PatchFile {
  readonly path: string;
  /** Number of lines; null for a binary file. */
  readonly added: number | null;
  readonly removed: number | null;
  readonly text: string;
}

/**
 * Content lines begin with a space, `+` or `-`, so only a header begins with `diff --git`. Git's lines end with a line feed alone: a
 * regular expression's `^` and `$` would also find the other line ends, which are content.
 */
export function patchFiles(patch: string): PatchFile[] {
  return patch
    .split(/(?<![^\n])(?=diff --git )/)
    .filter((text) => text !== "")
    .map((text) => {
      const lines = text.split("\n");
      const hunks = lines.findIndex((line) => line.startsWith("@@ "));
      const head = hunks === -1 ? lines : lines.slice(0, hunks);
      const isBinary = head.some((line) => /^(?:GIT binary patch$|Binary files )/.test(line));
      const count = (sign: string) =>
        isBinary ? null : lines.slice(head.length).filter((line) => line.startsWith(sign)).length;
      return { path: pathOf(head), added: count("+"), removed: count("-"), text };
    });
}

/** Git's header: `/dev/null` means no file; a name with special characters is quoted. */
function pathOf(head: readonly string[]): string {
  const pathAfter = (sign: string) =>
    head
      .filter((line) => line.startsWith(`${sign} `) && line !== `${sign} /dev/null`)
      .map((line) => /^"?[ab]\/([^]*?)"?\t?$/.exec(line.slice(4))?.[1])[0];
  return (
    pathAfter("+++") ?? pathAfter("---") ?? /^diff --git "?a\/([^]*?)"? "?b\//.exec(head[0] ?? "")?.[1] ?? "?"
  );
}
