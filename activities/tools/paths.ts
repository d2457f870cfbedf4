/** Paths as the model writes them. Pure: where links lead is decided inside the sandbox, not here. */
import path from "node:path/posix";
import { shorten } from "../contract/cut-text.ts";

export const WORKSPACE = "/workspace";

export type PathAnswer =
  | { readonly ok: true; readonly relative: string; readonly absolute: string }
  | { readonly ok: false; readonly message: string };

/** `written` as a path relative to the workspace (`.` for itself); refuses what names a place outside it. */
export function workspacePath(written: string | undefined): PathAnswer {
  const given = written ?? ".";
  if (given === "") return refuse("The path is empty. Give a path relative to /workspace.");
  if (given.includes("\0")) return refuse("A path cannot hold a NUL character.");
  const absolute = path.resolve(WORKSPACE, given);
  if (absolute !== WORKSPACE && !absolute.startsWith(`${WORKSPACE}/`)) {
    return refuse(
      `${showName(given)} lies outside /workspace. Give a path relative to /workspace, or an absolute one inside it.`,
    );
  }
  const relative = absolute === WORKSPACE ? "." : absolute.slice(WORKSPACE.length + 1);
  return { ok: true, relative, absolute };
}

function refuse(message: string): PathAnswer {
  return { ok: false, message };
}

/** A file name on one line: quoted as JSON where it holds quotes, control characters or blanks at its ends. */
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

/** The beginning of a text on one line, at most `max` characters, for people. */
export function oneLine(text: string, max: number): string {
  return shorten(text.replace(/\s+/g, " ").trim(), max);
}
