/** Progress of a running command, as reported in its activity's heartbeat. Pure. */

/** @param key the call's key, such as `s12c0`: step 12, its first call */
export function progressNote(key: string, bytes: number, lastLine: string | undefined): string {
  const size = `${bytes.toLocaleString("en-US")} bytes`;
  return [key, size, ...(lastLine === undefined ? [] : [lastLine])].join(" · ");
}

/** Parses a note: the call, and the last line if one was printed. */
export function parseProgress(note: string): { readonly key: string; readonly line: string } | undefined {
  const [, key, size, line] = /^(s\d+c\d+) · ([\d,]+ bytes)(?: · (.*))?$/s.exec(note) ?? [];
  return key === undefined || size === undefined ? undefined : { key, line: line ?? size };
}

/**
 * The last complete line of output: an incomplete line may hold half a secret, which no mask would recognise.
 * @param isBeginning whether the text starts where the output does; otherwise its first line is a partial one
 */
export function lastWholeLine(text: string, isBeginning: boolean): string | undefined {
  const lines = text.split(/[\r\n]+/).slice(isBeginning ? 0 : 1, -1);
  return lines.findLast((line) => line.trim() !== "")?.trim();
}
