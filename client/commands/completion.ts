/** `longhaul completion SHELL`: a script that completes commands, flags and session ids. */
import { Argument, Command } from "commander";
import { listSessions } from "../../activities/store/reading.ts";
import type { CommandEntry } from "../console/program.ts";
import type { Output } from "../console/output.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { withServices } from "../sessions/with-session.ts";
import { wholeCommand } from "../setup/own-command.ts";
import { isPlainWord } from "../console/format.ts";

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

export const shells = ["bash", "zsh", "fish"] as const;
export type ShellName = (typeof shells)[number];

export interface CompletedCommand {
  /** The command's name, then its aliases. */
  readonly names: readonly string[];
  readonly about: string;
  readonly flags: readonly { readonly name: string; readonly about: string; readonly takesValue: boolean }[];
  /** True if the first argument is a session. */
  readonly takesId: boolean;
  /** Possible values of the first argument, if they are fixed. */
  readonly choices: readonly string[];
}

/** Bash runs what is in a list of words, and Temporal's Web UI can start a session under any id: only names that are plain. */
export const completedIds = (ids: readonly string[]): string =>
  ids
    .filter(isPlainWord)
    .map((id) => `${id}\n`)
    .join("");

/** @param program command that starts the client from any folder; the script calls it for session ids */
export function completionScript(
  shell: ShellName,
  commands: readonly CompletedCommand[],
  program: string,
): string {
  return writers[shell](commands, `${program} completion ids 2>/dev/null`);
}

type Writer = (commands: readonly CompletedCommand[], ids: string) => string;

const writers: Record<ShellName, Writer> = {
  bash: (commands, ids) => `# bash: source <(longhaul completion bash)
_longhaul() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.flatMap(({ names }) => names).join(" ")}"
  elif [[ $current == -* ]]; then
    case \${COMP_WORDS[1]} in
${commands.map((command) => `      ${command.names.join("|")}) words="${flagsOf(command).join(" ")}" ;;`).join("\n")}
    esac
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case \${COMP_WORDS[1]} in
      ${withIds(commands).join("|")}) words="$(${ids})" ;;
${fixed(commands)
  .map(({ names, choices }) => `      ${names.join("|")}) words="${choices.join(" ")}" ;;`)
  .join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _longhaul longhaul
`,
  zsh: (commands, ids) => `#compdef longhaul
# zsh: source <(longhaul completion zsh)
_longhaul() {
  local -a commands=(
${commands.flatMap(({ names, about }) => names.map((name) => `    ${quoted(`${name}:${about.replaceAll(":", String.raw`\:`)}`)}`)).join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
  elif [[ $words[CURRENT] == -* ]]; then
    case $words[2] in
${commands.map((command) => `      ${command.names.join("|")}) compadd -- ${flagsOf(command).join(" ")} ;;`).join("\n")}
    esac
  elif (( CURRENT == 3 )); then
    case $words[2] in
      ${withIds(commands).join("|")}) compadd -- @last \${(f)"$(${ids})"} ;;
${fixed(commands)
  .map(({ names, choices }) => `      ${names.join("|")}) compadd -- ${choices.join(" ")} ;;`)
  .join("\n")}
      *) _files ;;
    esac
  else
    _files
  fi
}
compdef _longhaul longhaul
`,
  fish: (commands, ids) =>
    `${[
      "# fish: longhaul completion fish | source",
      ...commands.flatMap(({ names, about }) =>
        names.map(
          (name) => `complete -c longhaul -f -n __fish_use_subcommand -a ${name} -d ${quoted(about)}`,
        ),
      ),
      ...commands.flatMap(({ names, flags }) =>
        flags.map(
          ({ name, about, takesValue }) =>
            `complete -c longhaul -n '__fish_seen_subcommand_from ${names.join(" ")}' -l ${name}${takesValue ? " -r" : ""} -d ${quoted(about)}`,
        ),
      ),
      `complete -c longhaul -f -n '${second(withIds(commands))}' -a ${fishWord(`@last (${ids})`)}`,
      ...fixed(commands).map(
        ({ names, choices }) =>
          `complete -c longhaul -f -n '${second(names)}' -a ${quoted(choices.join(" "))}`,
      ),
    ].join("\n")}\n`,
};

const flagsOf = ({ flags }: CompletedCommand) => flags.map(({ name }) => `--${name}`);
const withIds = (commands: readonly CompletedCommand[]) =>
  commands.filter(({ takesId }) => takesId).flatMap(({ names }) => names);
const fixed = (commands: readonly CompletedCommand[]) => commands.filter(({ choices }) => choices.length > 0);
/** True while the word after one of these commands is being typed. */
const second = (names: readonly string[]) =>
  `__fish_seen_subcommand_from ${names.join(" ")}; and test (count (commandline -opc)) -eq 2`;

/** Quotes a description as one word for all three shells. */
const quoted = (text: string) => `'${text.replaceAll("'", "’")}'`;

const fishWord = (text: string) => `'${text.replaceAll("'", String.raw`\'`)}'`;
