/**
 * File names that look the same and are not: a decomposed letter from a Mac, a narrow blank in a screenshot's name, a typographic
 * quote. A model cannot see the difference, so it writes the other one.
 */
import path from "node:path/posix";
import type { FileAnswer, SandboxFiles } from "../sandbox/sandbox.ts";
import { plainCharacters } from "./plain-characters.ts";

/** Equal for names that look the same. */
export function lookOf(name: string): string {
  return plainCharacters(name.normalize("NFC").replace(/[\p{Cf}\uFE00-\uFE0F]/gu, ""));
}

/** A name with its unusual characters as escapes, so that one can see which it is. */
export function showLook(name: string): string {
  const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(name).replace(
    /[^\S ]|[\p{M}\p{Cf}\u2010-\u2015\u2018-\u201F\u2032\u2033]/gu,
    (char) => Array.from({ length: char.length }, (_unit, place) => escaped(char.charAt(place))).join(""),
  );
}

/** Names in a folder that look like this one; also the name itself, if it is there. */
export async function alikeIn(files: SandboxFiles, folder: string, name: string): Promise<string[]> {
  const listed = await files.list(folder);
  if (!listed.ok) return [];
  const look = lookOf(name);
  return listed.entries.map((entry) => entry.name).filter((other) => lookOf(other) === look);
}

/** The only existing path that looks like this one, folder by folder; undefined if none does, or several do. */
export async function pathAlike(files: SandboxFiles, given: string): Promise<string | undefined> {
  let found = ".";
  for (const part of given.split("/")) {
    const next = path.join(found, part);
    if ((await files.stat(next)).ok) {
      found = next;
      continue;
    }
    const alike = await alikeIn(files, found, part);
    if (alike.length !== 1) return undefined;
    found = path.join(found, alike[0] ?? "");
  }
  return found === given ? undefined : found;
}

/** What a file operation answered, at which path, and a line if that is not the path that was asked for. */
export interface Named<T> {
  readonly answer: FileAnswer<T>;
  readonly path: string;
  readonly remark: string | undefined;
}

/** Asks at the path as given; if nothing is there, at the only one that looks the same. */
export async function byLook<T>(
  files: SandboxFiles,
  given: string,
  ask: (at: string) => Promise<FileAnswer<T>>,
): Promise<Named<T>> {
  const answer = await ask(given);
  const missing = !answer.ok && answer.reason === "not-found";
  const alike = missing ? await pathAlike(files, given) : undefined;
  if (alike === undefined) return { answer, path: given, remark: undefined };
  return { answer: await ask(alike), path: alike, remark: lookRemark(given, alike) };
}

export function lookRemark(given: string, taken: string): string {
  return `(There is no ${showLook(given)}. This is ${showLook(taken)}, the only name that looks the same.)`;
}
