/** Paths as the model writes them. Pure: links are resolved inside the sandbox, not here. */
import path from "node:path/posix";
import { WORKSPACE } from "../config/sandbox-settings.ts";
import { shorten } from "../text/cut.ts";
import { ToolFailure } from "./failure.ts";

/** `given` as a path relative to the workspace (`.` for itself). @throws ToolFailure for a place outside it */
export function workspacePath(given = "."): { readonly relative: string; readonly absolute: string } {
  if (given === "") throw new ToolFailure("The path is empty. Give a path relative to /workspace.");
  if (given.includes("\0")) throw new ToolFailure("A path cannot contain a NUL character.");
  const absolute = path.resolve(WORKSPACE, given);
  if (absolute !== WORKSPACE && !absolute.startsWith(`${WORKSPACE}/`)) {
    throw new ToolFailure(
      `${showName(given)} is outside /workspace. Give a path relative to /workspace, or an absolute one inside it.`,
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
