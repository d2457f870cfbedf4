/** One commit as the steps in which an agent would have made it: look, read, change, check, mend, commit. Pure. */
import { pick, type Random } from "../policies/material.ts";
import type { Change, Commit } from "./commits.ts";
import { editsOf, patchOf, type Edit } from "./edits.ts";
import { clauseOf, reasonOf, symbolOf } from "./words.ts";

interface PlannedCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface PlannedStep {
  readonly text: string;
  readonly calls: readonly PlannedCall[];
}

/** A file of up to so many lines is read whole. */
const WHOLE_LINES = 220;
const AROUND_LINES = 45;
/** A piece of up to so many lines goes into a patch with others. */
const SMALL_LINES = 4;
const PATCH_FILES = 4;
/** Most edits of one file in one step. */
const MAX_EDITS = 3;

export function planCommit(commit: Commit, random: Random): PlannedStep[] {
  const { changes } = commit;
  const [first] = changes;
  if (first === undefined) return [];
  const steps: PlannedStep[] = [open(commit), search(commit, first, random)];
  const small = changes.filter(isSmall);
  const rest = changes.filter((change) => !isSmall(change));
  for (let at = 0; at < small.length; at += PATCH_FILES)
    steps.push(...together(small.slice(at, at + PATCH_FILES), commit));
  const middle = Math.ceil(rest.length / 2);
  for (const [at, change] of rest.entries()) {
    if (at === middle && at > 1 && random() < 0.6)
      steps.push(says("Half of it is there: the compiler tells what is missing.", tsc()));
    steps.push(...alone(change, commit, random));
  }
  return [...steps, ...checks(commit, random)];
}

function isSmall({ kind, hunks }: Change): boolean {
  const [hunk] = hunks;
  return kind === "changed" && hunk !== undefined && hunks.length === 1 && hunk.added.length <= SMALL_LINES;
}

const says = (text: string, ...calls: PlannedCall[]): PlannedStep => ({ text, calls });
const bash = (command: string, more: object = {}): PlannedCall => ({
  name: "bash",
  input: { command, ...more },
});
const tsc = () => bash("tsc -p . --noEmit", { timeout_seconds: 300 });

function open(commit: Commit): PlannedStep {
  const items = commit.subject.split(/[;:,] /).map((content) => ({ content, status: "pending" }));
  const all = [...items, { content: "checks, and the commit", status: "pending" }];
  const [head, ...rest] = all;
  const plan: PlannedCall = { name: "todo", input: { items: [{ ...head, status: "in_progress" }, ...rest] } };
  return says(
    `The change is: ${commit.subject}. It touches ${commit.changes.length} files. First the plan.`,
    plan,
  );
}

function search(commit: Commit, first: Change, random: Random): PlannedStep {
  const other = pick(random, commit.changes);
  const names = [...new Set([symbolOf(first), symbolOf(other)])];
  const greps = names.map((pattern) => ({ name: "grep_content", input: { pattern } }));
  const folder = first.path.split("/").slice(0, -1).join("/") || ".";
  const look =
    random() < 0.5
      ? { name: "list_directory", input: { path: folder } }
      : {
          name: "glob_files",
          input: { pattern: `**/*${(first.path.split("/").at(-1) ?? "").slice(0, 6)}*` },
        };
  return says(`Where ${names.join(" and ")} are used, and what lies beside ${first.path}.`, ...greps, look);
}

function together(changes: readonly Change[], commit: Commit): PlannedStep[] {
  const names = changes.map(({ path }) => path).join(", ");
  const edits = changes.flatMap((change) => editsOf(change) ?? []);
  const patched = new Set(edits.map(({ path }) => path));
  return [
    says(`Small places in ${names}: I look at each.`, ...changes.map(readCall)),
    says(`${clauseOf(commit, 0)}: the same in ${names}.`, {
      name: "apply_patch",
      input: { patch: patchOf(edits) },
    }),
    ...changes.filter(({ path }) => !patched.has(path)).map((change) => write(change, commit)),
  ];
}

function alone(change: Change, commit: Commit, random: Random): PlannedStep[] {
  const { kind, path, from } = change;
  if (kind === "removed")
    return [says(`${path} goes: nothing needs it any more.`, bash(`git rm -q ${path}`))];
  if (kind === "added") {
    const looks = random() < 0.3 ? [style(path)] : [];
    return [...looks, write(change, commit)];
  }
  const folder = path.split("/").slice(0, -1).join("/");
  const moved =
    kind === "moved"
      ? [says(`${from} becomes ${path}.`, bash(`mkdir -p ${folder} && git mv ${from} ${path}`))]
      : [];
  const edits = editsOf(change);
  const read = says(`How ${path} does it today.`, readCall(change));
  if (edits === undefined) return [...moved, read, write(change, commit)];
  const steps: PlannedStep[] = [];
  for (let at = 0; at < edits.length;) {
    const batch = edits.slice(at, at + 1 + Math.floor(random() * MAX_EDITS));
    steps.push(...editSteps(change, batch, commit, random));
    at += batch.length;
  }
  const after = steps.length > 1 && random() < 0.5 ? [lookAgain(change, random)] : [];
  return [...moved, ...(edits.length === 0 ? [] : [read]), ...steps, ...after];
}

function style(path: string): PlannedStep {
  const folder = path.split("/").slice(0, -1).join("/") || ".";
  const command = `cd ${folder} 2>/dev/null && ls | head -40 && f=$(ls | grep -F . | head -1) && sed -n 1,60p "$f"`;
  return says(`How the neighbours of ${path} are written.`, bash(command));
}

function write(change: Change, commit: Commit): PlannedStep {
  const input = { path: change.path, content: change.after.join("\n") };
  return says(`${change.path}: ${reasonOf(change, undefined, commit)}`, { name: "write_file", input });
}

function editSteps(change: Change, edits: readonly Edit[], commit: Commit, random: Random): PlannedStep[] {
  const { path } = change;
  const [first] = edits;
  if (first === undefined) return [];
  const reasons = [...new Set(edits.map(({ hunk }) => reasonOf(change, hunk, commit)))];
  const reason = `${path}: ${reasons.join(" ")}`;
  const good = says(reason, ...edits.map(callOf));
  if (random() > 0.09) return [good];
  const { oldString, newString, hunk } = first;
  // The usual mistakes: the numbers that read_file shows, or a line that is not there.
  const wrong =
    random() < 0.5
      ? oldString
          .split("\n")
          .map((line, at) => `${hunk.beforeFrom + at}\t${line}`)
          .join("\n")
      : `${oldString}\n// end of ${path}`;
  const failing = { name: "edit_file", input: { path, old_string: wrong, new_string: newString } };
  const again = { name: "read_file", input: { path, offset: Math.max(1, hunk.afterFrom - 5), limit: 40 } };
  return [says(reason, failing), says(`That did not match; I read the place again.`, again), good];
}

/** After several edits: the file as it stands, or what they came to. */
function lookAgain({ path, after }: Change, random: Random): PlannedStep {
  const limit = Math.min(after.length, WHOLE_LINES);
  return random() < 0.5
    ? says(`${path} once more, whole: several edits met in it.`, {
        name: "read_file",
        input: { path, limit },
      })
    : says(`What the edits of ${path} came to.`, bash(`git diff HEAD -- ${path}`));
}

function callOf({ path, oldString, newString }: Edit): PlannedCall {
  return { name: "edit_file", input: { path, old_string: oldString, new_string: newString } };
}

function readCall(change: Change): PlannedCall {
  const { before, hunks } = change;
  const path = change.path;
  if (before.length <= WHOLE_LINES) return { name: "read_file", input: { path } };
  const from = Math.max(1, (hunks[0]?.beforeFrom ?? 0) - AROUND_LINES);
  const last = hunks.at(-1);
  const to = (last?.beforeFrom ?? 0) + (last?.removed.length ?? 0) + AROUND_LINES;
  return { name: "read_file", input: { path, offset: from, limit: to - from } };
}

/** Outputs that are long now and then. */
const LONG: readonly { readonly why: string; readonly command: string; readonly seconds?: number }[] = [
  {
    why: "All of the unit tests once",
    command: "vitest run --project unit --reporter verbose",
    seconds: 400,
  },
  { why: "The whole diff, read once from top to bottom", command: "git diff HEAD" },
  {
    why: "How a recorded history looks that has this in it",
    command: "head -c 60000 test/fixtures/histories/compaction.json",
  },
  { why: "What waits anywhere", command: 'rg -n "await " activities client worker | head -900' },
  { why: "Sizes of all sources", command: "git ls-files | xargs wc -l | sort -rn | head -200" },
];

function checks(commit: Commit, random: Random): PlannedStep[] {
  const kept = commit.changes.filter(({ kind }) => kind !== "removed").map(({ path }) => path);
  const typed = kept.filter((path) => path.endsWith(".ts"));
  const python = kept.filter((path) => path.endsWith(".py"));
  const units = kept.filter((path) => path.startsWith("test/unit/"));
  const tested = units.length > 0 ? units : [nearestTests(typed)];
  const long = pick(random, LONG);
  const longCall = bash(long.command, long.seconds === undefined ? {} : { timeout_seconds: long.seconds });
  return [
    ...(typed.length > 0 ? [says("All of it is written. Does it compile?", tsc())] : []),
    ...(typed.length > 0
      ? [says("The linter, on what was changed.", bash(`oxlint ${typed.slice(0, 12).join(" ")}`))]
      : []),
    ...(python.length > 0
      ? [
          says(
            "The Python of the sandbox compiles?",
            bash(`python3 -m py_compile ${python.join(" ")} && echo fine`),
          ),
        ]
      : []),
    ...(typed.length > 0
      ? [
          says(
            "The tests that are nearest.",
            bash(`vitest run --project unit ${tested.join(" ")}`, { timeout_seconds: 300 }),
          ),
        ]
      : []),
    ...(random() < 0.6 ? [says(`${long.why}.`, longCall)] : []),
    says("What has changed, before it is committed.", bash("git status --short && git diff --stat HEAD")),
    says(
      `Committed as one change: ${clauseOf(commit, 1)}.`,
      bash(
        `git add -A && git commit -q -m '${commit.subject.replaceAll("'", "'\\''")}' && git log --oneline | head -5`,
      ),
    ),
  ];
}

/** Folder of unit tests that belongs to the changed sources. */
function nearestTests(paths: readonly string[]): string {
  const areas = ["tools", "context", "model", "store", "client", "worker", "workflows", "local"];
  const area = areas.find((each) => paths.some((path) => path.includes(`${each}/`)));
  return area === undefined ? "test/unit/workspace.test.ts" : `test/unit/${area}`;
}
