/** `longhaul queue` and `unsay`: the messages that the agent has not read yet. */
import type { Command } from "commander";
import { harmlessLine, shellWord } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { Output } from "../console/output.ts";
import { readStatus } from "../sessions/session-status.ts";
import { SESSION, withSession, withWorkingSession } from "../sessions/with-session.ts";
import { notPossible, usageError } from "../console/errors.ts";
import { withdrawAll, withdrawMessage } from "../sessions/guidance.ts";

const TEXT_CHARS = 100;

/** `longhaul queue ID`: the messages that wait for the next step. */
export function queueCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const { queue } = await readStatus(services, row);
      if (flags.json === true) {
        output.json({ id: row.id, queue }, 2);
        return;
      }
      const lines = queue.map(
        ({ id, text, queuedAt }, index) =>
          `${index + 1}. ${id}  ${queuedAt}  ${harmlessLine(text, TEXT_CHARS)}`,
      );
      output.result(lines.map((line) => `${line}\n`).join(""));
      output.note(
        queue.length === 0
          ? `Nothing waits for ${row.id}.\n`
          : `Take one back: longhaul unsay ${shellWord(row.id)} ${queue.length}\n`,
      );
    });
}

interface UnsayFlags {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `longhaul unsay ID MESSAGE`: takes back messages that the agent has not read yet. */
export function unsayCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[message-id]", "the message: its id, the beginning of it, or its number in the queue")
    .option("--all", "every message that waits")
    .option("--json", "one JSON document");
  return (reference: string, named: string | undefined, { all = false, json = false }: UnsayFlags) => {
    if ((named === undefined) !== all)
      throw usageError(
        "Name one message, or take all back with --all.",
        `longhaul queue ${shellWord(reference)}`,
      );
    return withWorkingSession(reference, async (services, row) => {
      if (named === undefined) {
        const withdrawn = await withdrawAll(services, row);
        if (json) output.json({ id: row.id, withdrawn });
        else output.note(`Taken back: ${plural(withdrawn.length, "message")} of ${row.id}.\n`);
        return;
      }
      const { queue } = await readStatus(services, row);
      const message = findMessage(queue, named);
      if (message === undefined) {
        throw notPossible(
          `No message "${named}" waits for ${row.id}: the agent has read it already, or it never existed.`,
          `See what waits: longhaul queue ${shellWord(row.id)}`,
        );
      }
      await withdrawMessage(services, row, message.id);
      if (json) output.json({ id: row.id, message: message.id, withdrawn: true });
      else output.note(`Taken back: ${message.id}. The agent will not read it.\n`);
    });
  };
}

/** By its id, by its position from 1, or by an unambiguous prefix of its id. */
function findMessage<Message extends { readonly id: string }>(
  queue: readonly Message[],
  reference: string,
): Message | undefined {
  const byId = queue.find(({ id }) => id === reference);
  if (byId !== undefined) return byId;
  if (/^\d{1,3}$/.test(reference)) return queue[Number(reference) - 1];
  const matches = queue.filter(({ id }) => id.startsWith(reference));
  return matches.length === 1 ? matches[0] : undefined;
}
