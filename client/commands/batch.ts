/** `longhaul batch FILE`: many tasks, some at a time; `batch list` and `batch status NAME` say how they stand. */
import { shellWord } from "../console/format.ts";
import { resolve } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import type { BatchDocument } from "../batch/batch-document.ts";
import type { Services } from "../connect/connection.ts";
import { exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { positiveAmount, positiveInteger } from "../sessions/flag-values.ts";
import { REHEARSAL_NOTE } from "../sessions/prepare-start.ts";
import { withItemFlags, type RunFlags } from "../sessions/run-flags.ts";

interface BatchFlags extends RunFlags {
  readonly concurrency: number;
  readonly stopAfter?: number;
  readonly name?: string;
}

export function batchCommand(command: Command, output: Output) {
  withItemFlags(command)
    .argument("<file>", "JSON lines, a task each; or `list`; or `status`, with a batch's name")
    .argument("[name]", "with `status`: the batch")
    .option("--name <name>", "the batch's name (default: the file's, without its extension)")
    .option("--concurrency <n>", "how many sessions run at once", concurrencyOf, 4)
    .option(
      "--stop-after <n>",
      "start no more tasks after this many failures of one kind in a row",
      positiveInteger,
    )
    .option(
      "--max-cost <usd>",
      "start no more tasks when all sessions together have cost this much",
      positiveAmount,
    )
    .option("--json", "one JSON document at the end");
  return async (file: string, name: string | undefined, flags: BatchFlags): Promise<ExitCode> => {
    if (file === "list" && name === undefined) return listAll(flags, output);
    if (file === "status") {
      if (name === undefined) throw usageError("Say which batch: longhaul batch status NAME");
      return showStatus(name, flags, output);
    }
    if (name !== undefined) throw usageError("A batch is one file. Its name is given by --name NAME.");
    return runBatch(resolve(file), flags, output);
  };
}

/** Keeps the batch's workflow state small. */
const MAX_CONCURRENCY = 100;

function concurrencyOf(text: string): number {
  const value = positiveInteger(text);
  if (value > MAX_CONCURRENCY) throw new InvalidArgumentError(`Expected at most ${MAX_CONCURRENCY}.`);
  return value;
}

async function listAll({ json }: BatchFlags, output: Output): Promise<ExitCode> {
  const [{ withServices }, { readBatches, summaryText, withRun }] = await Promise.all([
    import("../sessions/with-session.ts"),
    import("../batch/batch-document.ts"),
  ]);
  const batches = await withServices(async (services) =>
    Promise.all((await readBatches(services)).map((batch) => withRun(services, batch))),
  );
  if (json === true) output.json(batches, 2);
  else if (batches.length === 0) output.note("There are no batches. Start one: longhaul batch FILE\n");
  else output.result(`${batches.map((batch) => summaryText(batch, output.style)).join("\n")}\n`);
  return exitCodes.completed;
}

async function showStatus(name: string, { json }: BatchFlags, output: Output): Promise<ExitCode> {
  const [{ withServices }, { readBatch, withRun }] = await Promise.all([
    import("../sessions/with-session.ts"),
    import("../batch/batch-document.ts"),
  ]);
  const document = await withServices(async (services) => withRun(services, await readBatch(services, name)));
  await showDocument(document, json === true, output);
  return exitCodes.completed;
}

async function runBatch(file: string, flags: BatchFlags, output: Output): Promise<ExitCode> {
  const [{ batchName }, { prepareBatch }] = await Promise.all([
    import("../batch/batch-file.ts"),
    import("../batch/prepare-batch.ts"),
  ]);
  const name = batchName(flags.name, file);
  const { items, config } = await prepareBatch(file, flags, output.note);
  if (config.rehearsal) output.note(`${REHEARSAL_NOTE}\n`);
  const [{ withPreparedServices }, { startBatch }] = await Promise.all([
    import("../sessions/with-session.ts"),
    import("../batch/start-batch.ts"),
  ]);
  const say = (line: string) => output.note(`${output.style("dim", line)}\n`);
  return withPreparedServices({ ...flags, image: config.run.sandbox.image }, say, async (services) => {
    const { concurrency, stopAfter, maxCost } = flags;
    const request = { name, items, concurrency, stopAfter, maxCostUsd: maxCost };
    const { attached, begun, completed } = await startBatch(services, request);
    const completedText = completed === 0 ? "" : `, ${completed} completed before`;
    const action = attached ? "attached to" : `${plural(begun, "session")} to start in`;
    const limits = attached ? "; it keeps its limits" : "";
    output.note(`${action} batch ${output.style("bold", name)}${completedText}${limits}\n`);
    return finish(services, name, flags.json === true, output);
  });
}

async function finish(services: Services, name: string, json: boolean, output: Output): Promise<ExitCode> {
  const [{ followBatch, batchExitCode }, { warnWithoutWorker }] = await Promise.all([
    import("../batch/batch-document.ts"),
    import("../connect/readiness.ts"),
  ]);
  await warnWithoutWorker(services, output);
  const document = await followBatch(services, name, output);
  if (document === undefined) {
    const lines = [
      `Detached: ${name} continues.`,
      `  longhaul batch status ${shellWord(name)}`,
      `  longhaul cancel ${shellWord(name)}`,
    ];
    output.note(`\n${lines.join("\n")}\n`);
    return exitCodes.interrupted;
  }
  await showDocument(document, json, output);
  return batchExitCode(document.status);
}

async function showDocument(document: BatchDocument, json: boolean, output: Output): Promise<void> {
  const { batchText } = await import("../batch/batch-document.ts");
  if (json) output.json(document, 2);
  else output.result(`${batchText(document, output.style, output.columns)}\n`);
}
