/** Checks every line of a batch's file as `start` would, before anything is started. */
import { dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { readBoundedText } from "../console/read-bounded-text.ts";
import { resolveConfig, type ResolvedConfig } from "../config/config.ts";
import { ClientError, usageError, unreadable } from "../console/errors.ts";
import { harmlessLine, definedFields } from "../console/format.ts";
import { checkRemote, prepareStart, type Sources } from "../sessions/prepare-start.ts";
import { type RunFlags } from "../sessions/run-flags.ts";
import type { Start } from "../sessions/start-session.ts";
import { readFolder } from "../workspace/workspace-folder.ts";
import { parseBatch, refuseMistakes, type BatchItem, type Mistake } from "./batch-file.ts";

export interface PreparedItem extends BatchItem {
  readonly start: Start;
}

export interface PreparedBatch {
  readonly items: readonly PreparedItem[];
  /** The first item's configuration: set-up prepares one image. */
  readonly config: ResolvedConfig;
}

const MAX_REASON_CHARS = 400;
/** After this time, the lines that follow a bad one are not checked: a server that does not answer costs 8 s for each. */
const MAX_CHECK_MS = 10_000;

/** @throws ClientError that lists each bad line with its reason: (missing) if only services or credentials are missing, else (usage) */
export async function prepareBatch(
  path: string,
  flags: RunFlags,
  note: (text: string) => void,
): Promise<PreparedBatch> {
  const { items, mistakes } = parseBatch(textIn(path));
  refuseMistakes(path, mistakes);
  const sources = sharedSources();
  const noteOnce = onceEach(note);
  const prepared: PreparedItem[] = [];
  const refused: Mistake[] = [];
  const startedMs = performance.now();
  let config: ResolvedConfig | undefined;
  for (const item of items) {
    try {
      const ready = await prepareStart([item.task], itemFlags(item, flags, dirname(path)), noteOnce, sources);
      config ??= ready.config;
      prepared.push({ ...item, start: ready.start });
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      const { message, fix = "", exitCode } = error;
      refused.push({
        line: item.line,
        reason: harmlessLine(`${message} ${fix}`, MAX_REASON_CHARS),
        exitCode,
      });
      if (performance.now() - startedMs > MAX_CHECK_MS)
        refuseMistakes(
          path,
          refused,
          `The lines after ${item.line} were not checked, because that takes long.`,
        );
    }
  }
  refuseMistakes(path, refused);
  if (config === undefined)
    throw usageError(`${path} has no tasks.`, 'Write one task a line, such as {"task": "…"}');
  return { items: prepared, config };
}

/** Chosen: some 100,000 tasks. */
const MAX_FILE_BYTES = 64 * 2 ** 20;

function textIn(path: string): string {
  try {
    return readBoundedText(path, { maxBytes: MAX_FILE_BYTES, pipes: true });
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** A line's settings override the common ones; its paths are relative to the file's folder. */
function itemFlags(item: BatchItem, flags: RunFlags, folder: string): RunFlags {
  const { repo, ref, workspace, model, config, priority, tenant } = item;
  const { repo: _repo, ref: _ref, branch: _branch, push: _push, pr: _pr, also: _also, ...withoutGit } = flags;
  const { workspace: _workspace, leaveOut: _leaveOut, ...withoutFolder } = flags;
  const withoutOther = repo === undefined ? flags : withoutFolder;
  const base = workspace === undefined ? withoutOther : withoutGit;
  const merged: RunFlags = {
    ...base,
    ...definedFields({ repo, ref, model, priority, tenant }),
    ...definedFields({
      workspace: workspace && resolve(folder, workspace),
      config: config && resolve(folder, config),
    }),
    questions: flags.questions ?? "deny",
  };
  if (flags.maxCost === undefined) return merged;
  // `maxCost` limits the whole batch; a session's own limit remains if it is lower.
  const { maxCost: _maxCost, ...sessionFlags } = merged;
  const { maxCostUsd = Infinity } = resolveConfig(sessionFlags).run.limits;
  return { ...merged, maxCost: Math.min(maxCostUsd, flags.maxCost) };
}

/** Checks a folder or repository only once if several items share it. */
function sharedSources(): Sources {
  const folders = new Map<string, ReturnType<typeof readFolder>>();
  const remotes = new Map<string, Promise<void>>();
  return {
    stdin: { kind: "none", stream: Readable.from([]) },
    readFolder: (path, leaveOut) => once(folders, path, () => readFolder(path, leaveOut)),
    checkRepository: (git, flags) => once(remotes, JSON.stringify(git), () => checkRemote(git, flags)),
  };
}

function once<T>(results: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const result = results.get(key) ?? make();
  results.set(key, result);
  return result;
}

function onceEach(note: (text: string) => void): (text: string) => void {
  const announced = new Set<string>();
  return (text) => {
    if (!announced.has(text)) note(text);
    announced.add(text);
  };
}
