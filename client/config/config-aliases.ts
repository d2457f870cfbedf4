/** Second spellings of settings that `longhaul.yaml` accepts (requirement D2), mapped to the documented ones. */

export type Group = Readonly<Record<string, unknown>>;
export type SettingPath = readonly string[];

/** The file's settings under their documented names, and where each of them is written. */
export interface Settings {
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
export function withoutAliases(settings: unknown): Settings {
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
export function spellingsIn(group: SettingPath, isSetting: (path: SettingPath) => boolean): string[] {
  const named = SPELLINGS.filter(({ from }) => from.length === group.length + 1 && from.at(-1) !== "*");
  return named.flatMap(({ from }) => {
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
