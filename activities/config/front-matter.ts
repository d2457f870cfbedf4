/**
 * The one reader of the front matter of a skill's file: the lines between `---` at its beginning. Pure.
 *
 * | written | read as |
 * |---|---|
 * | YAML with `description`, and `name` or not | its values; the name of the folder |
 * | what is no YAML: a colon in a text without quotes, tabs, `globs: *.ts`, a `[` that stays open | line by line: what follows `name:` and `description:` |
 * | blank lines, a mark of the file's encoding or a comment before it; `...` at its end; other line ends | without them |
 * | no front matter, no end of it, no description | not at all: the reason |
 */
import { parse } from "yaml";
import { isJsonObject, objectOf } from "../text/json.ts";

export type FrontMatter =
  | { readonly name: string | undefined; readonly description: string }
  /** Why there is none, as a clause. */
  | { readonly why: string };

const BEGIN = /^\uFEFF?(?:[ \t]*\n|[ \t]*<!--[^]*?-->)*---[ \t]*\n/;
const END = /^(?:---|\.\.\.)[ \t]*$/m;
/** A field at the beginning of a line, whatever its indentation. */
const FIELD = /^[ \t]*["']?([A-Za-z][\w-]*)["']?[ \t]*:(?:[ \t]+|$)(.*)$/;

/** @param text of the file, or its beginning */
export function readFrontMatter(text: string): FrontMatter {
  const lines = text.replaceAll(/\r\n?/g, "\n");
  const begin = BEGIN.exec(lines)?.[0];
  if (begin === undefined) return { why: "it does not begin with front matter between two lines ---" };
  const rest = lines.slice(begin.length);
  const end = END.exec(rest);
  if (end === null) return { why: "its front matter has no closing line ---" };
  const front = rest.slice(0, end.index);
  const { fields, problem } = asYaml(front);
  const name = textOf(fields["name"]) ?? lineOf(front, "name");
  const description = textOf(fields["description"]) ?? lineOf(front, "description");
  if (description !== undefined) return { name, description };
  return { why: `its front matter has no description${problem === undefined ? "" : ` (${problem})`}` };
}

function asYaml(front: string): {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly problem?: string;
} {
  try {
    const value: unknown = parse(front, { maxAliasCount: 0, logLevel: "error" });
    return isJsonObject(value)
      ? { fields: value }
      : { fields: objectOf(value), problem: "it is not a list of fields" };
  } catch (error) {
    const [first = ""] = (error instanceof Error ? error.message : "").split(/:?\n/);
    return { fields: {}, problem: first };
  }
}

const textOf = (value: unknown): string | undefined =>
  (typeof value === "string" && value.trim() !== "") || typeof value === "number" ? String(value) : undefined;

/** What follows a field's name, with the lines below it up to the next field. */
function lineOf(front: string, field: string): string | undefined {
  const lines = front.split("\n");
  const place = lines.findIndex((line) => FIELD.exec(line)?.[1]?.toLowerCase() === field);
  if (place === -1) return undefined;
  const first = (FIELD.exec(lines[place] ?? "")?.[2] ?? "").trim();
  const below = lines.slice(place + 1);
  const next = below.findIndex((line) => !/^[ \t]/.test(line) || FIELD.test(line));
  const more = below.slice(0, next === -1 ? below.length : next).map((line) => line.trim());
  // A mark of a text in several lines.
  const text = [/^[|>][+-]?$/.test(first) ? "" : first, ...more].join(" ").trim();
  const unquoted = /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text;
  // What is open is no text.
  return unquoted === "" || /^[[{]/.test(unquoted) ? undefined : unquoted;
}
