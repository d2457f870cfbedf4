/** How far a running command is, as the heartbeat of its activity says it. Pure. */

/** @param key the call's key, such as `s12c0`: step 12, its first call */
export function progressNote(key: string, bytes: number, lastLine: string | undefined): string {
  const size = `${bytes.toLocaleString("en-US")} bytes`;
  return [key, size, ...(lastLine === undefined ? [] : [lastLine])].join(" · ");
}

/** Back from a note: the call, and the last line if one was printed. */
export function parseProgress(note: string): { readonly key: string; readonly line: string } | undefined {
  const [, key, size, line] = /^(s\d+c\d+) · ([\d,]+ bytes)(?: · (.*))?$/s.exec(note) ?? [];
  return key === undefined || size === undefined ? undefined : { key, line: line ?? size };
}

/**
 * The last whole line of output: what has no end yet may be half a secret, which no mask would know.
 * @param isBeginning the text begins where the output does; else its first line is a part of one
 */
export function lastWholeLine(text: string, isBeginning: boolean): string | undefined {
  const lines = text.split(/[\r\n]+/).slice(isBeginning ? 0 : 1, -1);
  return lines.findLast((line) => line.trim() !== "")?.trim();
}
