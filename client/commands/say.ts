/** `longhaul say` and `resume`: a message for a session that runs or has ended. */
import { shellWord } from "../console/format.ts";
import type { Command } from "commander";
import { switchModel } from "../../activities/store/session-settings.ts";
import { usageError, notPossible } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { notShown, readAttachments } from "../sessions/attachments.ts";
import { collect } from "../sessions/flag-values.ts";
import { resolveAsking } from "../sessions/prepare-start.ts";
import { isMessageId, sendGuidance, sentNotes } from "../sessions/guidance.ts";
import { parseSettings, SESSION, requireSession, withWorkingSession } from "../sessions/with-session.ts";
import { processStdin, readMessage } from "../sessions/task-input.ts";
import { sessionHasEnded } from "../sessions/start-session.ts";

interface SayFlags {
  readonly image?: readonly string[];
  readonly file?: readonly string[];
  readonly id?: string;
  readonly model?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** `longhaul say ID MESSAGE`: guides a session that runs; one that has ended resumes with it. */
export function sayCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("<message...>", "what to say; - reads it from stdin")
    .option("--image <file>", "image or PDF to show; may be repeated", collect)
    .option("--file <file>", "text file, image or PDF to show; may be repeated", collect)
    .option("--id <id>", "your own id for the message: one with the same id is delivered once")
    .option("--model <provider/model>", "continue with another model, from the next step")
    .option("--config <file>", "where that model is described (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .option("--json", "one JSON document");
  return async (reference: string, messageWords: readonly string[], flags: SayFlags) => {
    const attachments = await readAttachments({ images: flags.image, files: flags.file });
    const text = await readMessage(messageWords, processStdin());
    if (flags.id !== undefined && !isMessageId(flags.id)) {
      throw usageError("--id must have 1 to 128 letters, digits, dots, colons, dashes and underscores.");
    }
    // Wrong usage is found before anything is sent.
    const model = flags.model === undefined ? undefined : (await resolveAsking(flags)).run;
    await withWorkingSession(reference, async (services, session) => {
      const sessionId = session.id;
      let row = session;
      // Nothing is changed in a session that cannot continue.
      const settings = parseSettings(session);
      // The prompt and the conversation of a session speak of its tools, or of none.
      if (model !== undefined && model.noTools !== settings.noTools)
        throw usageError(
          `${model.model} is used ${model.noTools === true ? "without" : "with"} tools, and this session has ${settings.noTools === true ? "none" : "tools"}; nothing was sent. Start a new session for that model.`,
        );
      if (model !== undefined && (await switchModel(services.store, sessionId, model))) {
        output.note(`${sessionId} continues with ${model.model}.\n`);
        row = await requireSession(services, sessionId);
      }
      for (const line of notShown(attachments, parseSettings(row))) output.note(`${line}\n`);
      const sent = await sendGuidance(services, row, { id: flags.id, text, attachments });
      if (flags.json === true) output.json({ id: sessionId, ...sent });
      else if (sent.queued) output.result(`queued, position ${sent.position}\n`);
      else output.result("already sent: a message with the same id is delivered once\n");
      for (const line of await sentNotes(services, sessionId, sent)) output.note(`${line}\n`);
    });
  };
}

const CONTINUE = "Continue where you left off.";

/** `longhaul resume ID [MESSAGE]`: continues a session that has ended; as `say`, with a default message. */
export function resumeCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[message...]", `what to say; default: ${CONTINUE}`)
    .option("--json", "one JSON document");
  return async (reference: string, messageWords: readonly string[], flags: { readonly json?: boolean }) => {
    const text = messageWords.length === 0 ? CONTINUE : await readMessage(messageWords, processStdin());
    await withWorkingSession(reference, async (services, row) => {
      const { id } = row;
      if (!sessionHasEnded(row))
        throw notPossible(
          `${id} has not ended (${row.status}).`,
          `Guide it: longhaul say ${shellWord(id)} "…"`,
        );
      const sent = await sendGuidance(services, row, { id: undefined, text, attachments: [] });
      if (flags.json === true) output.json({ id, ...sent });
      for (const line of await sentNotes(services, id, sent)) output.note(`${line}\n`);
    });
  };
}
