/** Which messages of a person are accepted, and why others are refused. Pure: the workflow uses it too. */
import type { UserPart } from "./message.ts";

/** Longest text of one message, in characters (1 Mi). Source: Codex's queue. */
export const MAX_GUIDANCE_CHARS = 1_048_576;

/** Whether a message is empty: no file, and no text but whitespace. */
export function isEmptyMessage(parts: readonly UserPart[]): boolean {
  return parts.every((part) => part.type === "text" && part.text.trim() === "");
}

/** Why a message cannot be queued, worded for its sender; undefined if it can. */
export function refusalOf(parts: readonly UserPart[]): string | undefined {
  if (isEmptyMessage(parts))
    return "The message is empty: nothing was queued. Write a text, or attach a file.";
  const chars = parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  if (chars > MAX_GUIDANCE_CHARS) {
    return `The message has ${chars} characters, more than ${MAX_GUIDANCE_CHARS}: nothing was queued. Put it in a file of the workspace and name that file.`;
  }
  return undefined;
}
