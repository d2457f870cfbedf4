/** `--attempts N`: a batch of sessions on one task, of which the best is delivered. What decides is `verify`, never a model. */
import { createHash } from "node:crypto";
import type { AttemptsOrder } from "../../activities/contract/attempts.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { listPublications } from "../../activities/store/repositories.ts";
import { batchExitCode, batchText, followBatch, type BatchDocument } from "../batch/batch-document.ts";
import { batchName } from "../batch/batch-file.ts";
import type { PreparedItem } from "../batch/prepare-batch.ts";
import { startBatch, type BatchOrder } from "../batch/start-batch.ts";
import { resolveConfig, type ResolvedConfig } from "../config/config.ts";
import type { Services } from "../connect/connection.ts";
import { warnWithoutWorker } from "../connect/readiness.ts";
import { exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import { shellWord } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { checkRemote, prepareStart } from "../sessions/prepare-start.ts";
import { sessionGit, type RunFlags } from "../sessions/run-flags.ts";
import { createSessionId } from "../sessions/session-id.ts";
import { readFolder } from "../workspace/workspace-folder.ts";

const [MIN_ATTEMPTS, MAX_ATTEMPTS] = [2, 20];
/** Sessions at once, as those of a batch. */
const CONCURRENCY = 4;

interface PreparedAttempts {
  readonly order: BatchOrder;
  readonly config: ResolvedConfig;
}

/** Finds every usage error before anything starts. @throws ClientError */
export async function prepareAttempts(
  taskWords: readonly string[],
  flags: RunFlags,
  note: (text: string) => void,
): Promise<PreparedAttempts> {
  const { attempts: count = 0, models = [], first = false, maxCost } = flags;
  if (count < MIN_ATTEMPTS || count > MAX_ATTEMPTS)
    throw usageError(`--attempts: expected ${MIN_ATTEMPTS} to ${MAX_ATTEMPTS}, not ${count}.`);
  const { settings, run } = resolveConfig(flags);
  if (run.verify === undefined)
    throw usageError(
      "--attempts chooses by what commands say about each attempt, and there are none.",
      'Add them, such as --verify "npm test".',
    );
  if (flags.container !== undefined)
    throw usageError("--attempts and --container exclude each other: attempts would work on the same files.");
  const git = sessionGit(flags, settings.git);
  const name = batchName(flags.id, "attempts") && (flags.id ?? createSessionId());
  const items: PreparedItem[] = [];
  let config: ResolvedConfig | undefined;
  let taskText = taskWords;
  for (let number = 1; number <= count; number += 1) {
    const model = models.length === 0 ? flags.model : models[(number - 1) % models.length];
    const ready = await prepareStart(
      taskText,
      attemptFlags(flags, model),
      number === 1 ? note : () => undefined,
      {
        readFolder,
        checkRepository: (repository, all) =>
          number === 1 ? checkRemote(repository, all) : Promise.resolve(),
      },
    );
    config ??= ready.config;
    taskText = [ready.start.task];
    items.push(asItem(number, ready.start));
  }
  if (config === undefined) throw usageError("There is no attempt to start.");
  const isWanted = git !== undefined && (git.push !== "never" || git.pr !== "none");
  const attempts: AttemptsOrder = {
    deliver: isWanted ? { push: true, pr: git.pr } : undefined,
    first: first ? true : undefined,
  };
  // Each may cost what is left when it begins, so only one after the other keeps the sum.
  const concurrency = maxCost === undefined ? Math.min(count, CONCURRENCY) : 1;
  return { order: { name, items, concurrency, stopAfter: undefined, maxCostUsd: maxCost, attempts }, config };
}

/** Nothing is delivered by an attempt itself. */
function attemptFlags(flags: RunFlags, model: string | undefined): RunFlags {
  const { id: _id, model: _model, ...rest } = flags;
  return {
    ...rest,
    ...(model === undefined ? {} : { model }),
    ...(flags.repo === undefined ? {} : ({ push: "never", pr: "none" } as const)),
  };
}

function asItem(number: number, { config, ...start }: PreparedItem["start"]): PreparedItem {
  const { verify } = config;
  const counted = verify === undefined ? config : { ...config, verify: { ...verify, countLines: true } };
  const { task } = start;
  const content = JSON.stringify({ task, number, model: config.model, commands: verify?.commands });
  return {
    id: String(number),
    ordinal: number,
    line: number,
    task,
    digest: createHash("sha256").update(content).digest("hex"),
    start: { ...start, config: counted },
  };
}

/** Starts them, and prints their name alone on stdout. The same again under the same name attaches to them, also after their end. */
export async function startAttempts(
  services: Services,
  batch: BatchOrder,
  output: Output,
): Promise<ExitCode> {
  const { name } = batch;
  await startBatch(services, batch);
  output.result(`${name}\n`);
  output.note(`See them: longhaul batch status ${shellWord(name)}\n`);
  return exitCodes.completed;
}

/** Starts them and shows their progress. The best one's answer goes alone to stdout; with `json`, the batch. */
export async function runAttempts(
  services: Services,
  batch: BatchOrder,
  { json }: { readonly json: boolean },
  output: Output,
): Promise<ExitCode> {
  const { name, items } = batch;
  const { attached } = await startBatch(services, batch);
  const action = attached ? "attached to" : `${items.length} attempts:`;
  output.note(`${action} ${output.style("bold", name)}\n`);
  await warnWithoutWorker(services, output);
  const document = await followBatch(services, name, output);
  if (document === undefined) {
    const lines = [`longhaul batch status ${shellWord(name)}`, `longhaul cancel ${shellWord(name)}`];
    output.note(`\nDetached: ${name} continues, and delivers the best.\n  ${lines.join("\n  ")}\n`);
    return exitCodes.interrupted;
  }
  if (json) output.json(document, 2);
  else await showBest(services, document, output);
  return attemptsExitCode(document);
}

async function showBest(services: Services, document: BatchDocument, output: Output): Promise<void> {
  const { style, columns } = output;
  output.note(`${batchText(document, style, columns)}\n`);
  const { chosen } = document;
  if (chosen === undefined) return;
  const { db } = services.store;
  const row = await findSessionRow(db, chosen.sessionId);
  const [newest] = await listPublications(db, chosen.sessionId);
  if (newest?.status === "done") output.note(`delivered: ${newest.url ?? newest.ref}\n`);
  else if (newest !== undefined)
    output.note(`not delivered: longhaul status ${shellWord(chosen.sessionId)}\n`);
  output.note(`its change: longhaul diff ${shellWord(chosen.sessionId)}\n`);
  if (row?.result) output.result(`${row.result}\n`);
}

/** Not verified comes before not delivered, as with one session. */
function attemptsExitCode({ status, chosen }: BatchDocument): ExitCode {
  if (chosen === undefined) return batchExitCode(status === "completed" ? "failed" : status);
  if (chosen.isUnverified === true) return exitCodes.unverified;
  return status === "completed" ? exitCodes.completed : exitCodes.undelivered;
}
