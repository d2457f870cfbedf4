/** Reads `longhaul.yaml`: errors name file, line and column, and suggest the closest known key. */
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type { Document } from "yaml";
import type { z } from "zod";
import { readBoundedText } from "../console/read-bounded-text.ts";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { issueText, knownKeys, unknownKeyText } from "../../activities/config/issue-text.ts";
import { usageError, unreadable } from "../console/errors.ts";
import { isGroup, spellingsIn, withoutAliases, type Group, type SettingPath } from "./config-aliases.ts";

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
      `The configuration is not valid YAML.\n${read.at(broken.pos[0])}: ${withoutPlace(broken.message)}`,
    );
  const result = agentConfigSchema.safeParse(read.raw);
  if (result.success) return read.raw as ConfigFile;
  const found = result.error.issues.flatMap((issue) => describe(issue, read));
  throw usageError(`The configuration has ${count(found.length)}.\n${found.join("\n")}`);
}

/** A setting's place in a file's text, as `longhaul.yaml:3:5`, under whichever of its names the file has it. */
export function placeOf(path: string, text: string, setting: SettingPath): string {
  const read = readText(path, text);
  return read.at(pathOffsets(read.document, read.spelled(setting)).key);
}

function readText(path: string, text: string): Read {
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
  let found = offset("value", node);
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
      if (pair === undefined) break;
      found = { ...offset("key", pair.key), ...offset("value", pair.value) };
      node = pair.value;
    } else {
      if (!isSeq(node) || node.items[Number(part)] === undefined) break;
      node = node.items[Number(part)];
      found = { ...offset("key", node), ...offset("value", node) };
    }
  }
  return found;
}

const offset = (name: "key" | "value", node: unknown): { key?: number; value?: number } =>
  isNode(node) && node.range ? { [name]: node.range[0] } : {};

/** Removes the position that the parser appends: we add our own. */
const withoutPlace = (text: string) => (text.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
const count = (number: number) => (number === 1 ? "a mistake" : `${number} mistakes`);

/** The file's text. @param isNamed by the person, so that it may be a pipe @throws ClientError (usage) if it cannot be read */
export function readConfig(path: string, isNamed: boolean): string {
  try {
    return readBoundedText(path, { pipes: isNamed });
  } catch (error) {
    throw unreadable(`The configuration file ${path}`, error);
  }
}
