/** Which folders of the workspace a call works in. Pure: what is really there is the sandbox's to say. */
import path from "node:path/posix";
import type { ToolCallPart } from "../contract/message.ts";
import { parsePatch } from "./patch-parse.ts";
import { workspacePath } from "./paths.ts";

/** The field that names a file, and the one that names a folder, by tool. */
const FILE_FIELDS: Readonly<Record<string, string>> = {
  read_file: "path",
  write_file: "path",
  edit_file: "path",
  view_image: "path",
};
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
  return relative(fieldOf(input, FILE_FIELDS[toolName]));
}

/** All files that a call names. */
export function touchedFiles(call: Pick<ToolCallPart, "toolName" | "input">): string[] {
  if (call.toolName === "apply_patch") return patched(fieldOf(call.input, "patch"));
  return [touchedFile(call)].filter((file) => file !== undefined);
}

/** The folders of what a call names and all above them, relative to the workspace (`.`), the nearest last. */
export function touchedFolders(call: ToolCallPart): string[] {
  const folder = FOLDER_FIELDS[call.toolName];
  const places =
    folder === undefined
      ? touchedFiles(call).map((file) => path.dirname(file))
      : [relative(fieldOf(call.input, folder) ?? ".")].filter((place) => place !== undefined);
  const folders = new Set(places.flatMap(withAbove));
  return [...folders].toSorted((left, right) => depth(left) - depth(right));
}

const depth = (folder: string): number => (folder === "." ? 0 : folder.split("/").length);

function withAbove(folder: string): string[] {
  const parts = folder === "." ? [] : folder.split("/");
  return [".", ...parts.map((_part, place) => parts.slice(0, place + 1).join("/"))];
}

function patched(patch: string | undefined): string[] {
  try {
    return parsePatch(patch ?? "")
      .flatMap((one) => ["moveTo" in one ? one.moveTo : undefined, one.path])
      .map((file) => relative(file))
      .filter((file) => file !== undefined);
  } catch {
    // The tool says what is wrong with it.
    return [];
  }
}

function relative(given: string | undefined): string | undefined {
  try {
    return given === undefined ? undefined : workspacePath(given).relative;
  } catch {
    return undefined;
  }
}

function fieldOf(input: unknown, name: string | undefined): string | undefined {
  if (name === undefined || typeof input !== "object" || input === null) return undefined;
  const value: unknown = Object.entries(input).find(([key]) => key === name)?.[1];
  return typeof value === "string" ? value : undefined;
}
