/** `longhaul completion SHELL`: a script that completes commands, flags and session ids. */
import { Argument, Command } from "commander";
import { listSessions } from "../../activities/store/reading.ts";
import type { CommandEntry } from "../console/program.ts";
import type { Output } from "../console/output.ts";
import {
  completedIds,
  completionScript,
  shells,
  type CompletedCommand,
  type ShellName,
} from "../console/completion-script.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { withServices } from "../sessions/with-session.ts";
import { wholeCommand } from "../setup/own-command.ts";

const COMPLETED_IDS = 100;

export const completionCommand =
  (commands: readonly CommandEntry[]) => (command: Command, output: Output) => {
    command.addArgument(
      new Argument("<shell>", "of which shell; ids prints what it completes").choices([...shells, "ids"]),
    );
    return async (shell: ShellName | "ids") => {
      if (shell !== "ids") {
        output.result(completionScript(shell, await describeCommands(commands, output), wholeCommand()));
        return;
      }
      await withServices(async ({ store }) => {
        const rows = (await unlessTableMissing(() => listSessions(store.db, { limit: COMPLETED_IDS }))) ?? [];
        output.result(completedIds(rows.map(({ id }) => id)));
      });
    };
  };

function describeCommands(commands: readonly CommandEntry[], output: Output): Promise<CompletedCommand[]> {
  return Promise.all(
    commands.map(async ({ name, aliases = [], about, load }) => {
      const command = new Command(name);
      (await load())(command, output);
      const [first] = command.registeredArguments;
      return {
        names: [name, ...aliases],
        about,
        flags: command.options.flatMap(({ long, description, required }) =>
          long == null ? [] : [{ name: long.slice(2), about: description, takesValue: required }],
        ),
        takesId: first?.name() === "id",
        choices: first?.argChoices ?? [],
      };
    }),
  );
}
