/**
 * The one reader of a tool's name as a model wrote it.
 *
 * | written | read as |
 * |---|---|
 * | a name of a tool | itself, untouched |
 * | `bash<|channel|>commentary`, `bash</tool>` | what is before the mark |
 * | `functions.bash`, `default_api:bash`, `tool.bash`, `mcp__server__tool`, `functions.bash:0` | without the prefix, without the number |
 * | `Bash`, `read-file`, `readFile`, `server.tool` | the one tool whose name has these letters and digits |
 * | a name that fits no tool, or several | itself: the call is answered with the names that there are |
 */
import { findTool, type ToolRegistry } from "../index.ts";
import { squashed } from "./input-synonyms.ts";

/** What templates and other agents put in front of names. */
const PREFIX =
  /^(?:to=|mcp__|(?:functions?|default_api|tools?|namespace|assistant|commentary|mcp|api)(?:[.:/]|__))/i;
const QUOTED = /^["'`\s]+|["'`\s]+$/g;

/** @returns the name of the one tool that is meant, or `written` */
export function readName(registry: ToolRegistry, written: string): string {
  if (findTool(registry, written) !== undefined) return written;
  const bare = withoutMarks(written);
  for (const name of [bare, ...withoutPrefixes(bare)]) {
    if (findTool(registry, name) !== undefined) return name;
    const fitting = alike(registry, name);
    if (fitting.length === 1) return fitting[0] ?? written;
    if (fitting.length > 1) return written;
  }
  return written;
}

const withoutMarks = (written: string): string =>
  (written.split("<")[0] ?? "")
    .replaceAll(QUOTED, "")
    .replace(/(?:\(\)|:\d+)$/, "")
    .replaceAll(QUOTED, "");

/** The name without its first prefix, its first two, and so on. */
function withoutPrefixes(name: string): string[] {
  const rest = name.replace(PREFIX, "");
  return rest === name || rest === "" ? [] : [rest, ...withoutPrefixes(rest)];
}

function alike(registry: ToolRegistry, name: string): string[] {
  const letters = squashed(name);
  return letters === "" ? [] : [...registry.keys()].filter((known) => squashed(known) === letters);
}
