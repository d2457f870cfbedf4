/** `longhaul delete ID` and `purge ID`: remove a session that has ended, or a leaked text from its rows. */
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { usageError, missing, notPossible } from "../console/errors.ts";
import { harmlessLine, present, shellWord } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { SESSION, withSession, recordAction } from "../sessions/with-session.ts";
import { Writable } from "node:stream";
import { purgeText, type Purged } from "../../activities/store/purge.ts";
import { deleteFamily, readFamily, type FamilyMember } from "../../activities/store/delete-session.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { forgetHistories, type Forgotten } from "../../temporal/forget-histories.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";

export function deleteCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--yes", "do not ask").option("--json", "one JSON document");
  return (reference: string, flags: { readonly yes?: boolean; readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      if (flags.yes !== true && !(await isMeant(`Delete ${row.id} (${harmlessLine(row.task, 60)})?`))) {
        output.note("Nothing was deleted.\n");
        return;
      }
      const deleted = await deleteSession(services, row);
      if (flags.json === true)
        output.json({ id: row.id, deleted: deleted.ids, histories: deleted.histories });
      else for (const line of deletedLines(row.id, deleted)) output.note(`${line}\n`);
    });
}

/** @throws ClientError (usage) if no one can confirm */
async function isMeant(question: string): Promise<boolean> {
  if (processStdin().kind !== "terminal")
    throw usageError(
      "This permanently deletes a session, and there is no terminal to ask for confirmation.",
      "Add --yes.",
    );
  const dialog = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test(
      (await dialog.question(`${question} Its files and messages will be gone. [y/N] `)).trim(),
    );
  } finally {
    dialog.close();
  }
}

function deletedLines(id: string, { ids, histories }: Deleted): string[] {
  const family = ids.length === 1 ? "" : ` with ${plural(ids.length - 1, "delegate")}`;
  return present(
    `${id} is deleted${family}. If its sandbox still exists, the worker's next clean-up removes it.`,
    histories.left > 0 &&
      `Temporal did not delete ${plural(histories.left, "history", "histories")} of it (${harmlessLine(histories.reason ?? "", 200)}); it keeps them until its own retention ends.`,
  );
}

/** A shorter text occurs in unrelated texts. */
const MIN_CHARS = 8;

export function purgeCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return async (reference: string, flags: { readonly json?: boolean }) => {
    const text = (await readSecret()).trim();
    if (text.length < MIN_CHARS)
      throw usageError(`The text has ${text.length} characters; it must have at least ${MIN_CHARS}.`);
    await withSession(reference, async (services, row) => {
      const family = await idleFamily(services, row);
      const purged = await purgeText(services.store.db, family, text);
      if (purged === undefined) throw running(row.id, row.id);
      await recordAction(services, row, "purge");
      if (flags.json === true) output.json({ id: row.id, ...purged });
      else for (const line of purgedLines(row.id, purged)) output.note(`${line}\n`);
    });
  };
}

/** From a pipe or a file; on a terminal, prompts for it without echo. */
async function readSecret(): Promise<string> {
  const stdin = processStdin();
  if (stdin.kind !== "terminal") return readMessage(["-"], stdin);
  process.stderr.write("The text to remove (not shown): ");
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const dialog = createInterface({ input: process.stdin, output: unseen, terminal: true });
  try {
    return (await dialog.question("")).trim();
  } finally {
    dialog.close();
    process.stderr.write("\n");
  }
}

function purgedLines(id: string, { rows, files, saves }: Purged): string[] {
  return present(
    rows === 0
      ? `No row of ${id} contained the text.`
      : `The text was removed from ${plural(rows, "row")} of ${id}.`,
    files > 0 &&
      `${plural(files, "image or document", "images or documents")} of its messages still ${files === 1 ? "contains" : "contain"} the text.`,
    ...saves.map(
      (save) =>
        `Saved files of ${save.id} still contain it, after step ${save.steps.join(", ")}: delete the session to remove them.`,
    ),
    "It was looked for as it is and as masking knows it: quoted and escaped for shells, JSON and URLs, in hex and decimal, backwards, and in base64 and base32, base64 also twice. A form that is compressed, encrypted or cut in pieces was not, nor the names of saved files.",
    `Not searched: Temporal's histories (people's messages, first lines of calls, final answers), forks, logs, backups. longhaul delete ${shellWord(id)} removes the histories too.`,
    "Someone may have seen it already: replace the key or password as well.",
  );
}

export interface Deleted {
  readonly ids: readonly string[];
  readonly histories: Forgotten;
}

/**
 * @throws ClientError (impossible) if it runs, or is another session's delegate; (missing) if Temporal does not answer
 *   whether it runs
 */
export async function deleteSession(services: Services, row: SessionRow): Promise<Deleted> {
  const { store, temporal, taskQueue, user } = services;
  const family = await idleFamily(services, row);
  const deletion = await deleteFamily(store.db, family, user);
  if (deletion.kind === "changed") throw running(row.id, row.id);
  const own = { db: store.db, taskQueue };
  return { ids: deletion.ids, histories: await forgetHistories(await temporal.client(), own, deletion) };
}

/**
 * A session with its delegates, none of which runs.
 * @throws ClientError as `deleteSession`
 */
export async function idleFamily(services: Services, row: SessionRow): Promise<FamilyMember[]> {
  const { store } = services;
  if (row.parentId !== null)
    throw notPossible(
      `${row.id} is a delegate of ${row.parentId}, whose conversation refers to it: nothing was changed.`,
      `Delete that one, which includes its delegates: ${row.parentId}`,
    );
  const family = await readFamily(store.db, row.id);
  for (const { id } of family) {
    const run = await describeRun(services, id);
    if (run === undefined)
      throw missing(
        `Temporal does not say whether ${id} runs: nothing was changed.`,
        "Try again when it answers: longhaul doctor",
      );
    if (run.status === "RUNNING") throw running(row.id, id);
  }
  return family;
}

/** @param which the session that runs: itself, or a delegate */
export function running(id: string, which: string) {
  return notPossible(
    which === id
      ? `${id} runs: nothing was changed.`
      : `${which}, a delegate of ${id}, runs: nothing was changed.`,
    `End it first: longhaul cancel ${shellWord(id)}`,
  );
}
