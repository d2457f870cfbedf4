/** Reads `longhaul.yaml`: errors name file, line and column, and suggest the closest known key. */
import { readFileSync } from "node:fs";
import { isMap, isNode, isScalar, LineCounter, parseDocument } from "yaml";
import type { Document } from "yaml";
import type { z } from "zod";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { issueText, knownKeys, unknownKeyText } from "../../activities/config/issue-text.ts";
import { usageError, unreadable } from "../console/errors.ts";
import { isGroup, withoutAliases, type Group } from "./config-aliases.ts";

/** The file's own settings, without defaults, to merge over the defaults. */
export type ConfigFile = z.input<typeof agentConfigSchema>;

type Path = readonly PropertyKey[];

/**
 * Parses a configuration file's text.
 * @throws ClientError (usage) that lists every mistake with its place
 */
export function parseConfigFile(path: string, text: string): ConfigFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const at = (offset: number | undefined) => {
    const { line, col } = lines.linePos(offset ?? 0);
    return `${path}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  // Later errors are mostly consequences of the first.
  const [broken] = document.errors;
  if (broken !== undefined)
    throw usageError(
      `The configuration is not valid YAML.\n${at(broken.pos[0])}: ${withoutPlace(broken.message)}`,
    );
  const raw = withoutAliases(document.toJS() ?? {});
  const result = agentConfigSchema.safeParse(raw);
  if (result.success) return raw as ConfigFile;
  const found = result.error.issues.flatMap((issue) => describe(issue, document, at));
  throw usageError(`The configuration has ${count(found.length)}.\n${found.join("\n")}`);
}

/** A setting's place in a file's text, as `longhaul.yaml:3:5`. */
export function placeOf(path: string, text: string, setting: readonly string[]): string {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const { line, col } = lines.linePos(keyOffset(document, setting.slice(0, -1), setting.at(-1) ?? "") ?? 0);
  return `${path}:${line}:${col}`;
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

function describe(
  issue: z.core.$ZodIssue,
  document: Document,
  at: (offset: number | undefined) => string,
): string[] {
  if (issue.code !== "unrecognized_keys") {
    const name = issue.path.map(String).join(".") || "the file";
    return [`${at(offsetOf(document, issue.path))}: ${name}: ${issueText(issue)}`];
  }
  const known = knownKeys(agentConfigSchema, issue.path);
  return issue.keys.map(
    (key) => `${at(keyOffset(document, issue.path, key))}: ${unknownKeyText([...issue.path, key], known)}`,
  );
}

function offsetOf(document: Document, path: Path): number | undefined {
  for (let length = path.length; length >= 0; length--) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return undefined;
}

function keyOffset(document: Document, path: Path, key: string): number | undefined {
  const map: unknown = path.length === 0 ? document.contents : document.getIn(path, true);
  if (!isMap(map)) return offsetOf(document, path);
  const pair = map.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
  return pair !== undefined && isScalar(pair.key) ? (pair.key.range?.[0] ?? undefined) : undefined;
}

/** Removes the position that the parser appends: we add our own. */
const withoutPlace = (text: string) => (text.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
const count = (number: number) => (number === 1 ? "a mistake" : `${number} mistakes`);

/** The file's text. @throws ClientError (usage) if it cannot be read */
export function readConfig(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(`The configuration file ${path}`, error);
  }
}
