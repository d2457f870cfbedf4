/** Reads `longhaul.yaml` with its second spellings: errors name file, line and column, and suggest the closest known key. */
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, type Document } from "yaml";
import type { z } from "zod";
import { readBoundedText } from "../console/read-bounded-text.ts";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { issueText, knownKeys, unknownKeyText } from "../../activities/config/issue-text.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { usageError, unreadable } from "../console/errors.ts";

/** The file's own settings, without defaults, to merge over the defaults. */
export type ConfigFile = z.input<typeof agentConfigSchema>;

/** A file's text and its settings, and how a place in it is shown. */
interface Read {
  readonly document: Document;
  readonly lines: LineCounter;
  readonly at: (offset: number | undefined) => string;
  readonly spelled: (path: readonly PropertyKey[]) => SettingPath;
  readonly raw: unknown;
}

/**
 * Parses a configuration file's text.
 * @throws ClientError (usage) that lists every mistake with its place
 */
export function parseConfigFile(path: string, text: string): ConfigFile {
  const read = readText(path, text);
  // Later errors are mostly consequences of the first.
  const [broken] = read.document.errors;
  if (broken !== undefined)
    throw usageError(
      `The configuration is not valid YAML.\n${read.at(broken.pos[0])}: ${reasonOfParser(broken.message)}`,
    );
  const result = agentConfigSchema.safeParse(read.raw);
  if (result.success) return read.raw as ConfigFile;
  const mistakes = result.error.issues.flatMap((issue) => describe(issue, read));
  throw usageError(`The configuration has ${count(mistakes.length)}.\n${mistakes.join("\n")}`);
}

/** A setting's place in a file's text, as `longhaul.yaml:3:5`, under whichever of its names the file has it. */
export function settingPlace(path: string, text: string, setting: SettingPath): string {
  const read = readText(path, text);
  return read.at(pathOffsets(read.document, read.spelled(setting)).key);
}

/** Chosen: the parser compares each key of a group with all others, 0.6 s for a file of this size that is nothing but keys. */
const MAX_CHARS = 131_072;

/** @throws ClientError (usage) for a text that is too long, too deep or grows without end when its references are followed */
function readText(path: string, text: string): Read {
  if (text.length > MAX_CHARS)
    throw usageError(`${path} has ${text.length} characters. A configuration has at most ${MAX_CHARS}.`);
  try {
    return parsed(path, text);
  } catch (error) {
    const reason = reasonOfParser(reasonOf(error));
    throw usageError(`${path} cannot be read as YAML: ${reason}.`);
  }
}

function parsed(path: string, text: string): Read {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const at = (offset: number | undefined) => {
    const { line, col } = lines.linePos(offset ?? 0);
    return `${path}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  const settings = document.errors.length > 0 ? {} : (document.toJS() ?? {});
  return { document, lines, at, ...withoutAliases(settings) };
}

/** `upper` over `lower`: groups are merged, everything else is replaced. */
export function layered(lower: ConfigFile, upper: ConfigFile): ConfigFile {
  return mergeGroups({ ...lower }, { ...upper });
}

function mergeGroups(lower: Group, upper: Group): Group {
  const merged: Record<string, unknown> = { ...lower };
  for (const [key, value] of Object.entries(upper)) {
    const below = merged[key];
    merged[key] = isGroup(below) && isGroup(value) ? mergeGroups(below, value) : value;
  }
  return merged;
}

function describe(issue: z.core.$ZodIssue, { document, lines, at, spelled }: Read): string[] {
  if (issue.code !== "unrecognized_keys") {
    const name = issue.path.map(String).join(".") || "the file";
    const { key, value } = pathOffsets(document, spelled(issue.path));
    const isBeside = key === undefined || lines.linePos(key).line === lines.linePos(value ?? key).line;
    return [`${at(isBeside ? (value ?? key) : key)}: ${name}: ${issueText(issue)}`];
  }
  const known = knownKeys(agentConfigSchema, issue.path);
  const isSetting = (path: SettingPath) =>
    knownKeys(agentConfigSchema, path.slice(0, -1)).includes(path.at(-1) ?? "");
  return issue.keys.map((key) => {
    const path = [...issue.path, key].map(String);
    const source = spelled(path);
    const others = [source, path].flatMap((here) => spellingsIn(here.slice(0, -1), isSetting));
    return `${at(pathOffsets(document, source).key)}: ${unknownKeyText(path, known, others)}`;
  });
}

/** Where the setting's name and its value begin, or those of the nearest group above it that the file has. */
function pathOffsets(document: Document, path: SettingPath): { key?: number; value?: number } {
  let node: unknown = document.contents;
  let position = offset("value", node);
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
      if (pair === undefined) break;
      position = { ...offset("key", pair.key), ...offset("value", pair.value) };
      node = pair.value;
    } else {
      if (!isSeq(node) || node.items[Number(part)] === undefined) break;
      node = node.items[Number(part)];
      position = { ...offset("key", node), ...offset("value", node) };
    }
  }
  return position;
}

const offset = (name: "key" | "value", node: unknown): { key?: number; value?: number } =>
  isNode(node) && node.range ? { [name]: node.range[0] } : {};

/** Without the position that the parser appends: we add our own. */
function reasonOfParser(text: string): string {
  const reason = (text.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
  return /call stack/i.test(reason) ? TOO_DEEP : reason;
}

const TOO_DEEP = "it is nested too deeply";
const count = (number: number) => (number === 1 ? "a mistake" : `${number} mistakes`);

/** The file's text. @param isNamed by the person, so that it may be a pipe @throws ClientError (usage) if it cannot be read */
export function readConfig(path: string, isNamed: boolean): string {
  try {
    return readBoundedText(path, { pipes: isNamed });
  } catch (error) {
    throw unreadable(`The configuration file ${path}`, error);
  }
}

/** Second spellings of settings that `longhaul.yaml` accepts (requirement D2), mapped to the documented ones. */
export type Group = Readonly<Record<string, unknown>>;
export type SettingPath = readonly string[];

/** The file's settings under their documented names, and where each of them is written. */
interface Settings {
  readonly raw: unknown;
  /** A setting's path as the file spells it, whether the setting itself or only a group above it is in the file. */
  readonly spelled: (path: readonly PropertyKey[]) => SettingPath;
}

/**
 * Each second spelling and the documented name; `*` is any name. A whole group may have another name, so each applies to what
 * is below it. In this order, so that one may lead to the next.
 */
export const SPELLINGS = [
  ["context.compression.strategy", "context.strategy"],
  ["context.compression.options", "context.options"],
  ["context.compression.*", "context.options.*"],
  ["context.options.pruneProtectTokens", "context.options.pruneProtect"],
  ["context.options.pruneMinimumTokens", "context.options.pruneMinimum"],
  ["tools.execute_command", "tools.bash"],
  ["tools.bash_exec", "tools.bash"],
  ["tools.read", "tools.read_file"],
  ["tools.write", "tools.write_file"],
  ["tools.edit", "tools.edit_file"],
  ["tools.glob", "tools.glob_files"],
  ["tools.grep", "tools.grep_content"],
  ["tools.*.maxOutputChars", "tools.*.limits.maxChars"],
  ["tools.*.maxLines", "tools.*.limits.maxLines"],
  ["tools.*.maxLineChars", "tools.*.limits.maxLineChars"],
  ["tools.*.maxLineLength", "tools.*.limits.maxLineChars"],
  ["tools.*.maxMatches", "tools.*.limits.maxMatches"],
  ["tools.*.limits.maxOutputChars", "tools.*.limits.maxChars"],
  ["tools.*.limits.maxLineLength", "tools.*.limits.maxLineChars"],
].map(([from = "", to = ""]) => ({ from: from.split("."), to: to.split(".") }));

interface Leaf {
  readonly path: SettingPath;
  readonly source: SettingPath;
  readonly value: unknown;
}

/** The settings under their documented names. A documented name overrides other spellings of it. */
function withoutAliases(settings: unknown): Settings {
  const sources = new Map<string, SettingPath>();
  const leaves = isGroup(settings) ? [...leavesOf(settings, [], [], sources)] : [];
  const isOther = ({ path, source }: Leaf) => keyOf(path) !== keyOf(source);
  const byRank = [...leaves.filter(isOther), ...leaves.filter((leaf) => !isOther(leaf))];
  for (const { path, source } of byRank) sources.set(keyOf(path), source);
  return {
    raw: isGroup(settings) ? merged(byRank) : settings,
    spelled: (path) => spelled(path.map(String), sources),
  };
}

function* leavesOf(
  group: Group,
  source: SettingPath,
  above: readonly unknown[],
  sources: Map<string, SettingPath>,
): Generator<Leaf> {
  for (const [key, value] of Object.entries(group)) {
    const here = [...source, key];
    const path = documented(here);
    if (!sources.has(keyOf(path))) sources.set(keyOf(path), here);
    // YAML's references can make a group contain itself.
    if (isGroup(value) && Object.keys(value).length > 0 && !above.includes(value))
      yield* leavesOf(value, here, [...above, value], sources);
    else if (!isEmptyCompression(here, value)) yield { path, source: here, value };
  }
}

/** The one group that is not a group under its documented name. */
const isEmptyCompression = (source: SettingPath, value: unknown) =>
  isGroup(value) && keyOf(source) === keyOf(["context", "compression"]);

/** Second spellings that a group may contain. @param isSetting whether there is a setting with this documented path */
function spellingsIn(group: SettingPath, isSetting: (path: SettingPath) => boolean): string[] {
  const spellings = SPELLINGS.filter(({ from }) => from.length === group.length + 1 && from.at(-1) !== "*");
  return spellings.flatMap(({ from }) => {
    const source = [...group, from.at(-1) ?? ""];
    const path = documented(source);
    return keyOf(path) !== keyOf(source) && isSetting(path) ? [from.at(-1) ?? ""] : [];
  });
}

function documented(source: SettingPath): SettingPath {
  return SPELLINGS.reduce<SettingPath>((path, { from, to }) => {
    if (path.length < from.length || !from.every((part, at) => part === "*" || part === path[at]))
      return path;
    const any = path[from.indexOf("*")] ?? "";
    return [...to.map((part) => (part === "*" ? any : part)), ...path.slice(from.length)];
  }, source);
}

function spelled(path: SettingPath, sources: ReadonlyMap<string, SettingPath>): SettingPath {
  for (let length = path.length; length > 0; length--) {
    const source = sources.get(keyOf(path.slice(0, length)));
    if (source !== undefined) return [...source, ...path.slice(length)];
  }
  return path;
}

type Tree = Map<string, unknown>;

/** Later leaves override earlier ones. Maps, because a file may name a setting `__proto__`. */
function merged(leaves: readonly Leaf[]): Group {
  const root: Tree = new Map();
  for (const { path, value } of leaves) {
    let tree = root;
    for (const part of path.slice(0, -1)) {
      const below = tree.get(part);
      const next: Tree = below instanceof Map ? below : new Map();
      tree.set(part, next);
      tree = next;
    }
    tree.set(path.at(-1) ?? "", value);
  }
  return groupOf(root);
}

function groupOf(tree: Tree): Group {
  return Object.fromEntries(
    [...tree].map(([key, value]) => [key, value instanceof Map ? groupOf(value) : value]),
  );
}

const keyOf = (path: SettingPath) => JSON.stringify(path);

export function isGroup(value: unknown): value is Group {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
