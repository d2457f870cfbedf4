/** Which file a path of the model means: through links, and by names that look the same. */
import path from "node:path/posix";
import { WORKSPACE } from "../config/sandbox-settings.ts";
import type { FileEntry, SandboxFiles, FileAnswer } from "../sandbox/sandbox.ts";
import { accepted, ToolFailure } from "./tool.ts";
import { showName } from "./paths.ts";
import { plainCharacters } from "./text-match.ts";

type Kind = FileEntry["kind"];

export interface RealPlace {
  /** The entry itself: links among its folders are followed, one at the end is not. Relative to the workspace. */
  readonly entry: string;
  /** Undefined: nothing is there. */
  readonly kind: Kind | undefined;
  /** Where the content is: behind a link at the end. Undefined if that leads nowhere. */
  readonly content: string | undefined;
}

interface Seen {
  readonly kind: Kind;
  readonly target?: string | undefined;
}

/** The files that paths are followed in, by paths whose folders are real. */
export interface FilesView {
  /** Undefined: nothing is there. */
  at(path: string): Promise<Seen | undefined>;
  /** Names in a folder that look like this one; also the name itself, if it is there. */
  alike(folder: string, name: string): Promise<readonly string[]>;
}

/** The files as they are. Its methods throw ToolFailure for what cannot be seen. */
export function filesView(files: SandboxFiles): FilesView {
  const answers = new Map<string, Promise<Seen | undefined>>();
  const ask = async (at: string): Promise<Seen | undefined> => {
    const answer = await files.stat(at);
    return !answer.ok && answer.reason === "not-found" ? undefined : accepted(answer);
  };
  return {
    at: (at) => {
      const answer = answers.get(at) ?? ask(at);
      answers.set(at, answer);
      return answer;
    },
    alike: (folder, name) => alikeIn(files, folder, name),
  };
}

/** As the sandbox walks a path. Source: its file program. */
const MAX_LINKS = 40;

interface Walk {
  readonly view: FilesView;
  /** Whether the last name may be another one that looks the same; folders always may. */
  readonly byLook: boolean;
  links: number;
}

/**
 * Follows links as the sandbox does. A name that is not there is taken for the only one that looks the same; the last one only
 * with `byLook`: a new file gets the name it was given.
 * @throws ToolFailure if the path leads outside, through what is no folder, or in a circle
 */
export async function realPlace(
  view: FilesView,
  inputPath: string,
  options: { readonly byLook: boolean },
): Promise<RealPlace> {
  const walk: Walk = { view, byLook: options.byLook, links: 0 };
  const first = await walkTo(walk, inputPath, inputPath.split("/"));
  if (first.seen?.kind !== "link") return { entry: first.at, kind: first.seen?.kind, content: first.at };
  let last = first;
  while (last.seen?.kind === "link") {
    const target = partsBehind(last.at, last.seen);
    if (target === undefined) return { entry: first.at, kind: "link", content: last.at };
    last = await walkTo(walk, inputPath, target);
  }
  return { entry: first.at, kind: "link", content: last.seen === undefined ? undefined : last.at };
}

async function walkTo(
  walk: Walk,
  inputPath: string,
  parts: readonly string[],
): Promise<{ at: string; seen: Seen | undefined }> {
  walk.links += 1;
  if (walk.links > MAX_LINKS) throw new ToolFailure(`${showName(inputPath)} leads through too many links.`);
  const resolved: string[] = [];
  const todo = parts.toReversed();
  let seen: Seen | undefined = { kind: "folder" };
  while (todo.length > 0) {
    const part = todo.pop() ?? "";
    if (part === "" || part === ".") continue;
    if (part === "..") {
      if (resolved.pop() === undefined)
        throw new ToolFailure(`${showName(inputPath)} leads outside /workspace.`);
      continue;
    }
    const name = await nameOf(walk, resolved.join("/"), part, todo.length === 0);
    const at = [...resolved, name].join("/");
    seen = await walk.view.at(at);
    if (todo.length === 0) return { at, seen };
    if (seen === undefined) return { at: path.normalize([at, ...todo.toReversed()].join("/")), seen };
    if (seen.kind === "link") {
      const target = partsBehind(at, seen);
      if (target !== undefined) return walkTo(walk, inputPath, [...target, ...todo.toReversed()]);
      const unread = [at, ...todo.toReversed()].join("/");
      return { at: unread, seen: await walk.view.at(unread) };
    }
    if (seen.kind !== "folder")
      throw new ToolFailure(
        `${showName(inputPath)} cannot be there: ${showName(at)} is a file, not a folder.`,
      );
    resolved.push(name);
  }
  return { at: resolved.join("/") || ".", seen: { kind: "folder" } };
}

async function nameOf(
  { view, byLook }: Walk,
  folder: string,
  part: string,
  isLast: boolean,
): Promise<string> {
  if ((isLast && !byLook) || (await view.at(path.join(folder || ".", part))) !== undefined) return part;
  const alike = await view.alike(folder || ".", part);
  return alike.length === 1 ? (alike[0] ?? part) : part;
}

/** Undefined for an absolute target that does not name the workspace as we do: only the sandbox knows where that is. */
function partsBehind(link: string, { target = "" }: Seen): string[] | undefined {
  if (!target.startsWith("/")) return [...path.dirname(link).split("/"), ...target.split("/")];
  if (target !== WORKSPACE && !target.startsWith(`${WORKSPACE}/`)) return undefined;
  return target.slice(WORKSPACE.length).split("/");
}

/**
 * Equal for names that look the same and are not: a decomposed letter from a Mac, a narrow blank in a screenshot's name, a
 * typographic quote. A model cannot see the difference, so it writes the other one.
 */
export function toLook(name: string): string {
  return plainCharacters(name.normalize("NFC").replace(/[\p{Cf}\uFE00-\uFE0F]/gu, ""));
}

/** A name with its unusual characters as escapes, so that one can see which it is. */
export function showLook(name: string): string {
  const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(name).replace(
    /[^\S ]|[\p{M}\p{Cf}\u2010-\u2015\u2018-\u201F\u2032\u2033]/gu,
    (char) => Array.from({ length: char.length }, (_unit, index) => escaped(char.charAt(index))).join(""),
  );
}

/** Names in a folder that look like this one; also the name itself, if it is there. */
async function alikeIn(files: SandboxFiles, folder: string, name: string): Promise<string[]> {
  const listed = await files.list(folder);
  if (!listed.ok) return [];
  const normalized = toLook(name);
  return listed.entries.map((entry) => entry.name).filter((other) => toLook(other) === normalized);
}

/** The only existing path that looks like this one, folder by folder; undefined if none does, or several do. */
export async function pathAlike(files: SandboxFiles, inputPath: string): Promise<string | undefined> {
  let current = ".";
  for (const part of inputPath.split("/")) {
    const next = path.join(current, part);
    if ((await files.stat(next)).ok) {
      current = next;
      continue;
    }
    const alike = await alikeIn(files, current, part);
    if (alike.length !== 1) return undefined;
    current = path.join(current, alike[0] ?? "");
  }
  return current === inputPath ? undefined : current;
}

/** What a file operation answered, at which path, and a line if that is not the path that was asked for. */
export interface AnswerAtPath<T> {
  readonly answer: FileAnswer<T>;
  readonly path: string;
  readonly remark: string | undefined;
}

/** Asks at the path as given; if nothing is there, at the only one that looks the same. */
export async function byLook<T>(
  files: SandboxFiles,
  inputPath: string,
  ask: (at: string) => Promise<FileAnswer<T>>,
): Promise<AnswerAtPath<T>> {
  const answer = await ask(inputPath);
  const missing = !answer.ok && answer.reason === "not-found";
  const alike = missing ? await pathAlike(files, inputPath) : undefined;
  if (alike === undefined) return { answer, path: inputPath, remark: undefined };
  return { answer: await ask(alike), path: alike, remark: lookRemark(inputPath, alike) };
}

export function lookRemark(inputPath: string, actualPath: string): string {
  return `(There is no ${showLook(inputPath)}. This is ${showLook(actualPath)}, the only name that looks the same.)`;
}
