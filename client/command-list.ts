/** The commands in the order of the help text. Each is loaded when it is asked for: a help text needs no database driver. */
import type { Command } from "commander";
import type { ExitCode } from "./console/errors.ts";
import type { Output } from "./console/output.ts";

/**
 * Adds the arguments and options of a command.
 * @returns what runs it; without an exit code it has completed
 */
type DefineCommand = (command: Command, output: Output) => (...args: never[]) => Promise<ExitCode | void>;

export interface CommandEntry {
  readonly name: string;
  /** Of the list of commands: the command itself describes its arguments. */
  readonly usage: string;
  readonly about: string;
  /** What people type who come from other programs. */
  readonly aliases?: readonly string[];
  readonly load: () => Promise<DefineCommand>;
}

export const commandList: readonly CommandEntry[] = [
  {
    name: "run",
    usage: "[task...]",
    about: "start a task and watch it; exits with the code of its outcome",
    load: async () => (await import("./commands/run.ts")).runCommand,
  },
  {
    name: "start",
    usage: "[task...]",
    about: "start a task and print its session id alone on stdout",
    load: async () => (await import("./commands/start.ts")).startCommand,
  },
  {
    name: "say",
    aliases: ["send"],
    usage: "<id> <message...>",
    about: "guide a session: at its next step if it runs, as its next task if it has ended",
    load: async () => (await import("./commands/say.ts")).sayCommand,
  },
  {
    name: "queue",
    usage: "<id>",
    about: "messages that wait for the next step, oldest first",
    load: async () => (await import("./commands/queue.ts")).queueCommand,
  },
  {
    name: "unsay",
    usage: "<id> <message-id>",
    about: "take a message back that the agent has not read yet",
    load: async () => (await import("./commands/unsay.ts")).unsayCommand,
  },
  {
    name: "batch",
    usage: "<file> [name]",
    about:
      "many tasks from a file, some at a time; again, and only what is missing is done (status NAME: how it stands)",
    load: async () => (await import("./commands/batch.ts")).batchCommand,
  },
  {
    name: "schedule",
    usage: "<what> [name] [task...]",
    about:
      "sessions that begin at fixed times: create NAME --cron TIMES -- TASK, list, pause, resume, delete, run NAME",
    load: async () => (await import("./commands/schedule.ts")).scheduleCommand,
  },
  {
    name: "questions",
    usage: "[id]",
    about: "what sessions ask of people, oldest first",
    load: async () => (await import("./commands/questions.ts")).questionsCommand,
  },
  {
    name: "answer",
    usage: "<id> [question] [text...]",
    about: "answer a session's question, or allow or refuse a call that waits for it",
    load: async () => (await import("./commands/answer.ts")).answerCommand,
  },
  {
    name: "resume",
    usage: "<id> [message...]",
    about: "continue a session that has ended; the same as say, with words of its own where none are given",
    load: async () => (await import("./commands/resume.ts")).resumeCommand,
  },
  {
    name: "interrupt",
    usage: "<id> [message...]",
    about: "abort the step in flight and continue, with a message if one is given",
    load: async () => (await import("./commands/interrupt.ts")).interruptCommand,
  },
  {
    name: "cancel",
    aliases: ["stop"],
    usage: "<id>",
    about: "end a session's run; waits for its clean-up and says what was kept",
    load: async () => (await import("./commands/cancel.ts")).cancelCommand,
  },
  {
    name: "watch",
    aliases: ["logs", "attach"],
    usage: "<id>",
    about: "attach to a session and show it live; Ctrl-C detaches, the task goes on",
    load: async () => (await import("./commands/watch.ts")).watchCommand,
  },
  {
    name: "status",
    usage: "<id>",
    about: "a session's state: step, context use, queue, cost; needs no worker",
    load: async () => (await import("./commands/status.ts")).statusCommand,
  },
  {
    name: "list",
    aliases: ["ls", "ps"],
    usage: "",
    about: "sessions, newest first",
    load: async () => (await import("./commands/list.ts")).listCommand,
  },
  {
    name: "messages",
    usage: "<id>",
    about: "the conversation as text: what was said, what was run, what came of it",
    load: async () => (await import("./commands/messages.ts")).messagesCommand,
  },
  {
    name: "context",
    usage: "<id>",
    about: "where the context window goes: system, tools, messages, output buffer, free",
    load: async () => (await import("./commands/context.ts")).contextCommand,
  },
  {
    name: "compact",
    usage: "<id> [focus...]",
    about: "replace old messages by a summary at the next step boundary",
    load: async () => (await import("./commands/compact.ts")).compactCommand,
  },
  {
    name: "undo-compaction",
    usage: "<id>",
    about: "undo the newest compaction round: the messages it replaced are in view again",
    load: async () => (await import("./commands/undo-compaction.ts")).undoCompactionCommand,
  },
  {
    name: "retry",
    usage: "<id>",
    about: "go back to before a step (--from-step N), conversation and files, and continue from there",
    load: async () => (await import("./commands/retry.ts")).retryCommand,
  },
  {
    name: "fork",
    usage: "<id>",
    about: "a new session from an earlier point of this one (--from-step N), which is unchanged",
    load: async () => (await import("./commands/fork.ts")).forkCommand,
  },
  {
    name: "export",
    usage: "<id>",
    about: "session, messages, tool calls, compaction rounds and model calls as one JSON document",
    load: async () => (await import("./commands/export.ts")).exportCommand,
  },
  {
    name: "report",
    usage: "<id> [file]",
    about: "one self-contained HTML file: timeline, context use, cost, change",
    load: async () => (await import("./commands/report.ts")).reportCommand,
  },
  {
    name: "pull",
    usage: "<id> <dir>",
    about: "copy a session's files, as last saved, into a folder",
    load: async () => (await import("./commands/pull.ts")).pullCommand,
  },
  {
    name: "diff",
    usage: "<id>",
    about: "the change against the files that were put in, as a patch",
    load: async () => (await import("./commands/diff.ts")).diffCommand,
  },
  {
    name: "delete",
    aliases: ["rm"],
    usage: "<id>",
    about: "delete a session that has ended, with its files, messages and delegates; asks first",
    load: async () => (await import("./commands/delete.ts")).deleteCommand,
  },
  {
    name: "purge",
    usage: "<id>",
    about: "take a leaked text out of a session that has ended; it is read from stdin",
    load: async () => (await import("./commands/purge.ts")).purgeCommand,
  },
  {
    name: "allow",
    usage: "<id> <domain>",
    about: "let a name through to a session's sandbox with --network listed, also while it runs",
    load: async () => (await import("./commands/allow.ts")).allowCommand,
  },
  {
    name: "apply",
    usage: "<id>",
    about: "put a session's change on a new branch of the checkout you are in; it is checked first",
    load: async () => (await import("./commands/apply.ts")).applyCommand,
  },
  {
    name: "push",
    usage: "<id>",
    about: "push the work of a session on a repository after it has ended",
    load: async () => (await import("./commands/push.ts")).pushCommand,
  },
  {
    name: "pr",
    usage: "<id>",
    about: "push it, and open its pull request or bring that up to date",
    load: async () => (await import("./commands/pr.ts")).pullRequestCommand,
  },
  {
    name: "ports",
    usage: "<id>",
    about: "what listens in a session's sandbox",
    load: async () => (await import("./commands/ports.ts")).portsCommand,
  },
  {
    name: "forward",
    usage: "<id> <port>",
    about: "a port of this machine that leads to a server in a session's sandbox; Ctrl-C ends it",
    load: async () => (await import("./commands/forward.ts")).forwardCommand,
  },
  {
    name: "serve",
    usage: "",
    about: "sessions over HTTP on this machine, and a page that shows them live; Ctrl-C ends it",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  {
    name: "codec-server",
    usage: "",
    about: "decrypts for Temporal's Web UI what LONGHAUL_CODEC_KEYS encrypted; Ctrl-C ends it",
    load: async () => (await import("./commands/codec-server.ts")).codecServerCommand,
  },
  {
    name: "worker",
    usage: "",
    about: "run a worker in the foreground until it is stopped",
    load: async () => (await import("./commands/local-services.ts")).workerCommand,
  },
  {
    name: "up",
    usage: "",
    about: "bring up local services and a worker in the foreground; Ctrl-C ends them",
    load: async () => (await import("./commands/local-services.ts")).upCommand,
  },
  {
    name: "down",
    usage: "",
    about: "stop the local worker and services that longhaul started; data is kept",
    load: async () => (await import("./commands/local-services.ts")).downCommand,
  },
  {
    name: "models",
    usage: "[filter]",
    about: "models with window and price, those whose key is there first",
    load: async () => (await import("./commands/models.ts")).modelsCommand,
  },
  {
    name: "mcp",
    usage: "<what> [server]",
    about: "MCP servers of the configuration: list them; test, login or logout one",
    load: async () => (await import("./commands/mcp.ts")).mcpCommand,
  },
  {
    name: "doctor",
    usage: "",
    about: "what is found, what is missing and how to fix it; each setting and its source",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
  {
    name: "completion",
    usage: "<shell>",
    about: "a script that completes commands, flags and ids in bash, zsh or fish",
    load: async () => (await import("./commands/completion.ts")).completionCommand,
  },
];
