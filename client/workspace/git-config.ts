/**
 * A repository's configuration reduced to settings that can neither run a program nor hold a credential.
 * It is an allow-list, so settings of future Git versions are left out too.
 */

export interface SafeConfig {
  /** Text for a new file; empty if no setting remains. */
  readonly text: string;
  /** Names of omitted settings, such as `core.fsmonitor`, and of changed ones. */
  readonly leftOut: readonly string[];
}

interface Setting {
  readonly section: string;
  readonly subsection: string | undefined;
  readonly key: string;
  readonly value: string;
}

/** Returns the value to write, or undefined if the setting is left out. */
type Rule = (value: string) => string | undefined;

const matching =
  (pattern: RegExp): Rule =>
  (value) =>
    pattern.test(value) ? value : undefined;
const flag = matching(/^(true|false|yes|no|on|off|0|1|)$/i);
const onOneLine = matching(/^[^\p{Cc}\p{Cf}]{1,500}$/u);
const remoteName = matching(/^(\.|[\p{L}\p{N}_][\p{L}\p{N}_./@+-]{0,200})$/u);

/** By section and key, as `section.key`; for sections with names as `section.*.key`. */
const RULES: Readonly<Record<string, Rule>> = {
  "core.repositoryformatversion": matching(/^[01]$/),
  "core.filemode": flag,
  "core.bare": flag,
  "core.ignorecase": flag,
  "core.symlinks": flag,
  "core.precomposeunicode": flag,
  "core.logallrefupdates": matching(/^(true|false|always)$/i),
  "core.autocrlf": matching(/^(true|false|input)$/i),
  "core.eol": matching(/^(lf|crlf|native)$/i),
  "extensions.objectformat": matching(/^sha(1|256)$/),
  "extensions.refstorage": matching(/^(files|reftable)$/),
  // Set in each checkout: pack files can be saved, and an old commit's LFS file stays a pointer.
  "pack.packsizelimit": matching(/^\d{1,9}[kmg]?$/i),
  "lfs.skipdownloaderrors": flag,
  "user.name": onOneLine,
  "user.email": onOneLine,
  "remote.*.url": safeRemoteUrl,
  "remote.*.pushurl": safeRemoteUrl,
  "remote.*.fetch": matching(/^[+^]?refs\/[\p{L}\p{N}_./*@+-]+(:refs\/[\p{L}\p{N}_./*@+-]+)?$/u),
  "branch.*.remote": remoteName,
  "branch.*.pushremote": remoteName,
  "branch.*.merge": matching(/^refs\/[\p{L}\p{N}_./@+#-]{1,250}$/u),
  "branch.*.rebase": flag,
  "submodule.*.url": safeRemoteUrl,
  "submodule.*.active": flag,
};

const NAMED = ["remote", "branch", "submodule"];

/** The part of a configuration file's text that is safe on another machine. */
export function safeGitConfig(text: string): SafeConfig {
  const kept: Setting[] = [];
  const leftOut = new Set<string>();
  for (const setting of parse(text)) {
    const rule = ruleOf(setting);
    const value = rule?.(setting.value);
    if (value === undefined || value !== setting.value) leftOut.add(nameOf(setting));
    if (value !== undefined) kept.push({ ...setting, value });
  }
  return { text: write(kept), leftOut: [...leftOut] };
}

function ruleOf({ section, subsection, key }: Setting): Rule | undefined {
  if (subsection === undefined) return RULES[`${section}.${key}`];
  const isPlain = /^[^\p{Cc}\p{Cf}"\\]{1,250}$/u.test(subsection) && !subsection.startsWith("-");
  return isPlain && NAMED.includes(section) ? RULES[`${section}.*.${key}`] : undefined;
}

function nameOf({ section, subsection, key }: Setting): string {
  return [section, ...(subsection === undefined ? [] : [safeRemoteUrl(subsection) ?? "…"]), key].join(".");
}

/** For other schemes, such as `ext::` or an unknown one, Git runs a program of that name. */
const SCHEMES = ["https:", "http:", "ssh:", "git:", "git+ssh:", "ssh+git:", "ftp:", "ftps:", "file:"];

/** The address without credentials; undefined if the address could make Git run a program. */
export function safeRemoteUrl(value: string): string | undefined {
  if (value === "" || value.startsWith("-") || /[\p{Cc}\p{Cf}]/u.test(value) || value.length > 2_000) return;
  if (/^[\w+.-]+::/.test(value)) return;
  if (!/^[\w+.-]+:\/\//.test(value)) {
    // A path, or `user@host:path`, which has no place for a password.
    const host = /^(?:[^@/:]*@)?([^/:]*):/.exec(value)?.[1];
    return host?.startsWith("-") === true ? undefined : value;
  }
  try {
    const url = new URL(value);
    if (!SCHEMES.includes(url.protocol) || url.hostname.startsWith("-")) return;
    const isSsh = url.protocol.includes("ssh");
    if (url.password === "" && url.search === "" && url.hash === "" && (isSsh || url.username === ""))
      return value;
    url.password = "";
    // SSH needs the user name, which is not a secret. With HTTP, the name or the query may be a token.
    if (!isSsh) url.username = "";
    url.search = "";
    url.hash = "";
    return url.href;
  } catch {
    return;
  }
}

/** Parses settings in Git's format. Unreadable lines are skipped: only known settings are written again. */
function* parse(text: string): Generator<Setting> {
  let section = "";
  let subsection: string | undefined;
  for (const line of logicalLines(text)) {
    let rest = line.trim();
    const head = /^\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/.exec(rest);
    if (head !== null) {
      const [whole, name = "", quoted] = head;
      const dot = name.indexOf(".");
      section = (dot < 0 ? name : name.slice(0, dot)).toLowerCase();
      subsection = quoted?.replace(/\\(.)/g, "$1") ?? (dot < 0 ? undefined : name.slice(dot + 1));
      rest = rest.slice(whole.length).trim();
    }
    const found = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=([^]*))?$/.exec(withoutComment(rest));
    if (found === null || section === "") continue;
    const [, key = "", value] = found;
    yield {
      section,
      subsection,
      key: key.toLowerCase(),
      value: value === undefined ? "true" : unquoted(value),
    };
  }
}

/** A backslash at the end of a line continues it. */
function logicalLines(text: string): string[] {
  return text
    .replace(/^\uFEFF/, "")
    .replaceAll("\r\n", "\n")
    .replace(/(?<!\\)((?:\\\\)*)\\\n/g, "$1")
    .split("\n");
}

function withoutComment(line: string): string {
  let quoted = false;
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === "\\") at += 1;
    else if (line[at] === '"') quoted = !quoted;
    else if (!quoted && (line[at] === "#" || line[at] === ";")) return line.slice(0, at);
  }
  return line;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b" };

function unquoted(value: string): string {
  return value
    .trim()
    .replace(/\\(.)|"/g, (_, sign?: string) => (sign === undefined ? "" : (ESCAPES[sign] ?? sign)));
}

function write(settings: readonly Setting[]): string {
  const sections = Map.groupBy(settings, ({ section, subsection }) =>
    subsection === undefined ? `[${section}]` : `[${section} "${subsection}"]`,
  );
  const lines = [...sections].flatMap(([head, entries]) => [
    head,
    ...entries.map(({ key, value }) => `\t${key} = "${value.replace(/["\\]/g, "\\$&")}"`),
  ]);
  return lines.map((line) => `${line}\n`).join("");
}
