/**
 * Decides which calls run, which wait for a person's approval, and which are denied: rules in order, the last
 * matching one applies, and without a match the call runs. This is a convenience: the sandbox protects, not a
 * pattern.
 */
import type { Grant } from "../../store/questions.ts";
import { fitsPattern } from "../../text/lists.ts";
import { relative, textField, touchedFiles } from "../paths.ts";
import { shellCommands, UNKNOWN } from "./shell-commands.ts";

export interface PermissionRule {
  /** A tool's name; `*` matches any characters. */
  readonly tool: string;
  /** Matched against the call's subject: a command, a path; `*` as above. Absent: every call of the tool. */
  readonly match?: string | undefined;
  readonly action: "allow" | "ask" | "deny";
}

export type Verdict =
  | { readonly action: "allow" }
  /** `rule` is the rule that decided, `about` the part of the call that it matched. */
  | { readonly action: "ask" | "deny"; readonly rule: PermissionRule; readonly about: string };

interface Call {
  readonly toolName: string;
  readonly input: unknown;
}

const SHELL_NAMES = new Set(["bash", "execute_command"]);
const TYPING = "write_stdin";
/** Its subject is the address in the form in which it is asked for. */
const WEB = "web_fetch";
const SEVERITY = { allow: 0, ask: 1, deny: 2 } as const;

/** @param grants rules that ask, but that a person has answered permanently */
export function judgeCall(
  rules: readonly PermissionRule[],
  call: Call,
  grants: readonly Grant[] = [],
): Verdict {
  const isGranted = (rule: PermissionRule) =>
    grants.some((grant) => grant.tool === rule.tool && grant.match === (rule.match ?? null));
  const toolRules = rules
    .filter((rule) => namesOf(call.toolName).some((name) => surely(rule.tool, name)))
    .map((rule) => (rule.action === "ask" && isGranted(rule) ? { ...rule, action: "allow" as const } : rule));
  let verdict: Verdict = { action: "allow" };
  if (toolRules.length === 0) return verdict;
  for (const subject of subjectsOf(call)) {
    const rule = toolRules.findLast((candidate) => matches(candidate, subject));
    if (rule === undefined || rule.action === "allow") continue;
    if (SEVERITY[rule.action] > SEVERITY[verdict.action])
      verdict = { action: rule.action, rule, about: subject.text.replaceAll(UNKNOWN, "…") };
  }
  return verdict;
}

/** Both names of the shell mean the same tool; what is typed into a terminal may be a shell's command. */
function namesOf(name: string): readonly string[] {
  if (name === TYPING) return [name, ...SHELL_NAMES];
  return SHELL_NAMES.has(name) ? [...SHELL_NAMES] : [name];
}

interface Subject {
  readonly text: string;
  /** The same subject under other names, which a rule that asks or denies matches as well. */
  readonly otherNames?: readonly string[];
  /** The call does not show the subject: rules that ask or deny count as matching. */
  readonly isUnknown?: true;
}

function matches({ match, action }: PermissionRule, { text, otherNames = [], isUnknown }: Subject): boolean {
  if (match === undefined) return true;
  if (action === "allow") return isUnknown !== true && surely(match, text);
  return isUnknown === true || [text, ...otherNames].some((name) => possibly(match, name));
}

function subjectsOf({ toolName, input }: Call): Subject[] {
  if (SHELL_NAMES.has(toolName)) {
    const text = textField(input, "command") ?? "";
    const { commands, others, isSure } = shellCommands(text);
    return [
      ...commands.map((command, index): Subject => ({ text: command, otherNames: others[index] ?? [] })),
      ...(isSure ? [] : [{ text, isUnknown: true as const }]),
    ];
  }
  if (toolName === TYPING) return typedSubjects(input);
  const url = toolName === WEB ? textField(input, "url") : undefined;
  if (url !== undefined) return [{ text: URL.canParse(url) ? new URL(url).href : url, otherNames: [url] }];
  const files = touchedFiles({ toolName, input });
  if (files.length > 0) return files.map((file) => ({ text: file }));
  const path = textField(input, "path") || undefined;
  return [{ text: relative(path) ?? path ?? JSON.stringify(input) ?? "" }];
}

/**
 * A text that is typed: whole, and as the commands that it has if it goes to a shell. What is uncertain is no reason to ask: most of
 * what is typed goes to other programs.
 */
function typedSubjects(input: unknown): Subject[] {
  const text = textField(input, "text")?.trim() ?? "";
  const { commands, others } = shellCommands(text);
  const typed = commands.map((command, index): Subject => ({
    text: command,
    otherNames: others[index] ?? [],
  }));
  return [{ text: text === "" ? (JSON.stringify(input) ?? "") : text }, ...typed];
}

/** A pattern that ends with ` *` also matches the words before it alone. */
const endings = (pattern: string): readonly string[] =>
  pattern.endsWith(" *") ? [pattern, pattern.slice(0, -2)] : [pattern];

/** Whether the pattern matches whatever the shell substitutes: only a `*` in the pattern can match that. */
function surely(pattern: string, text: string): boolean {
  return endings(pattern).some((ending) => fitsPattern(ending, text));
}

/** Whether some shell substitution would make the pattern match. */
function possibly(pattern: string, text: string): boolean {
  return endings(pattern).some((ending) => fitsPattern(ending, text, UNKNOWN));
}
