/** `longhaul purge ID`: removes a leaked text from a session's rows. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Command } from "commander";
import { purgeText, type Purged } from "../../activities/store/purge.ts";
import { usageError } from "../console/errors.ts";
import { present } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { idleFamily, running } from "../sessions/delete-session.ts";
import { recordAction, SESSION, withSession } from "../sessions/with-session.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";

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
  const asked = createInterface({ input: process.stdin, output: unseen, terminal: true });
  try {
    return (await asked.question("")).trim();
  } finally {
    asked.close();
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
    `Not searched: Temporal's histories (people's messages, first lines of calls, final answers), forks, logs, backups. longhaul delete ${id} removes the histories too.`,
    "Someone may have seen it already: replace the key or password as well.",
  );
}
