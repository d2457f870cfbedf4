/** Paths as the model writes them, and which folders and files of the workspace a call names. Links are resolved inside the sandbox, not here. */
import path from "node:path/posix";
import { WORKSPACE } from "../config/sandbox-settings.ts";
import { shorten } from "../text/cut.ts";
import { ToolFailure } from "./tool.ts";
import type { ToolCallPart } from "../contract/message.ts";
import { parsePatch } from "./patch-parse.ts";

/** `given` as a path relative to the workspace (`.` for itself). @throws ToolFailure for a place outside it */
export function workspacePath(inputPath = "."): { readonly relative: string; readonly absolute: string } {
  if (inputPath === "") throw new ToolFailure("The path is empty. Give a path relative to /workspace.");
  if (inputPath.includes("\0")) throw new ToolFailure("A path cannot contain a NUL character.");
  const absolute = path.resolve(WORKSPACE, inputPath);
  if (absolute !== WORKSPACE && !absolute.startsWith(`${WORKSPACE}/`)) {
    throw new ToolFailure(
      `${showName(inputPath)} is outside /workspace. Give a path relative to /workspace, or an absolute one inside it.`,
    );
  }
  const relative = absolute === WORKSPACE ? "." : absolute.slice(WORKSPACE.length + 1);
  return { relative, absolute };
}

/** A file name on one line: quoted as JSON if it holds quotes, control characters or blanks at its ends. */
export function showName(name: string): string {
  // oxlint-disable-next-line no-control-regex
  return /[\u0000-\u001f\u007f"\\]|^\s|\s$/.test(name) ? JSON.stringify(name) : name;
}

/** A size as people read it: `812 B`, `3.4 KB`, `1.2 GB`. */
export function showSize(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return unit === 0 ? `${bytes} B` : `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** The beginning of a text on one line, at most `max` characters, for display. */
export function oneLine(text: string, max: number): string {
  return shorten(text.replace(/\s+/g, " ").trim(), max);
}

/** Tools whose `path` is a file. */
const FILE_TOOLS = ["read_file", "write_file", "edit_file", "view_image"];
/** The input field that holds a folder, by tool. */
const FOLDER_FIELDS: Readonly<Record<string, string>> = {
  list_directory: "path",
  glob_files: "path",
  grep_content: "path",
  bash: "cwd",
  execute_command: "cwd",
};

/** The file that a call names, relative to the workspace; undefined if it names none, or one outside. */
export function touchedFile({
  toolName,
  input,
}: Pick<ToolCallPart, "toolName" | "input">): string | undefined {
  return FILE_TOOLS.includes(toolName) ? relative(textField(input, "path")) : undefined;
}

/** All files that a call names. */
export function touchedFiles(call: Pick<ToolCallPart, "toolName" | "input">): string[] {
  if (call.toolName === "apply_patch") return patched(textField(call.input, "patch"));
  return [touchedFile(call)].filter((file) => file !== undefined);
}

/** The folders of all paths that a call names and their ancestors, relative to the workspace (`.`), the nearest last. */
export function touchedFolders(call: ToolCallPart): string[] {
  const folder = FOLDER_FIELDS[call.toolName];
  const locations =
    folder === undefined
      ? touchedFiles(call).map((file) => path.dirname(file))
      : [relative(textField(call.input, folder) ?? ".")].filter((path) => path !== undefined);
  const folders = new Set(locations.flatMap(withAbove));
  return [...folders].toSorted((left, right) => depth(left) - depth(right));
}

const depth = (folder: string): number => (folder === "." ? 0 : folder.split("/").length);

function withAbove(folder: string): string[] {
  const parts = folder === "." ? [] : folder.split("/");
  return [".", ...parts.map((_part, index) => parts.slice(0, index + 1).join("/"))];
}

function patched(patch: string | undefined): string[] {
  try {
    return parsePatch(patch ?? "")
      .flatMap((change) => ["moveTo" in change ? change.moveTo : undefined, change.path])
      .map((file) => relative(file))
      .filter((file) => file !== undefined);
  } catch {
    // The tool itself reports what is wrong with the patch.
    return [];
  }
}

/** A path relative to the workspace; undefined if it is outside. */
export function relative(inputPath: string | undefined): string | undefined {
  try {
    return inputPath === undefined ? undefined : workspacePath(inputPath).relative;
  } catch {
    return undefined;
  }
}

/** A field of a call's input, if it is text. */
export function textField(input: unknown, name: string): string | undefined {
  if (typeof input !== "object" || input === null) return undefined;
  const value: unknown = Object.entries(input).find(([key]) => key === name)?.[1];
  return typeof value === "string" ? value : undefined;
}
