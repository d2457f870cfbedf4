/** The commands in the order of the help text. Each is loaded on demand: a help text needs no database driver. */
import type { CommandEntry } from "./console/program.ts";

const listed: readonly Omit<CommandEntry, "name">[] = [
  {
    usage: "run [task...]",
    about: "start a task and watch it; exits with the code of its outcome",
    load: async () => (await import("./commands/run.ts")).runCommand,
  },
  {
    usage: "start [task...]",
    about: "start a task and print its session id alone on stdout",
    load: async () => (await import("./commands/run.ts")).startCommand,
  },
  {
    usage: "say <id> <message...>",
    aliases: ["send"],
    about: "guide a session: at its next step if it runs, as its next task if it has ended",
    load: async () => (await import("./commands/say.ts")).sayCommand,
  },
  {
    usage: "queue <id>",
    about: "show the messages that wait for the next step, oldest first",
    load: async () => (await import("./commands/queue.ts")).queueCommand,
  },
  {
    usage: "unsay <id> [message-id]",
    about: "take back a message that the agent has not read yet, or all of them",
    load: async () => (await import("./commands/queue.ts")).unsayCommand,
  },
  {
    usage: "wake <id>",
    about: "end the wait that the agent asked for, without a message; of a followed pull request: look now",
    load: async () => (await import("./commands/wake.ts")).wakeCommand,
  },
  {
    usage: "batch <file> [name]",
    about:
      "run the tasks of a file, several at a time; started again, it does only what is missing (status NAME: its progress)",
    load: async () => (await import("./commands/batch.ts")).batchCommand,
  },
  {
    usage: "schedule <what> [name] [task...]",
    about:
      "start sessions at fixed times: create NAME --cron TIMES -- TASK, list, pause, resume, delete, run NAME",
    load: async () => (await import("./commands/schedule.ts")).scheduleCommand,
  },
  {
    usage: "usage",
    about: "show what sessions cost, by person, repository, tenant or model; also of deleted ones",
    load: async () => (await import("./commands/usage.ts")).usageCommand,
  },
  {
    usage: "warm [url]",
    about:
      "make the bases of a repository's default branch for everyone, before a session needs them (--every 30m, --list, --off)",
    load: async () => (await import("./commands/warm.ts")).warmCommand,
  },
  {
    usage: "questions [id]",
    about: "show what sessions ask people, oldest first",
    load: async () => (await import("./commands/questions.ts")).questionsCommand,
  },
  {
    usage: "answer <id> [question] [text...]",
    about: "answer a session's question, or allow or refuse a call that waits for approval",
    load: async () => (await import("./commands/questions.ts")).answerCommand,
  },
  {
    usage: "resume <id> [message...]",
    about: "continue a session that has ended; like say, with a default message",
    load: async () => (await import("./commands/say.ts")).resumeCommand,
  },
  {
    usage: "interrupt <id> [message...]",
    about: "abort the step in flight and continue, with a message if one is given",
    load: async () => (await import("./commands/cancel.ts")).interruptCommand,
  },
  {
    usage: "cancel <id>",
    aliases: ["stop"],
    about: "end a session's run; waits for its clean-up and says what was kept",
    load: async () => (await import("./commands/cancel.ts")).cancelCommand,
  },
  {
    usage: "watch <id>",
    aliases: ["logs", "attach"],
    about: "attach to a session and show it live; Ctrl-C detaches, the task goes on",
    load: async () => (await import("./commands/watch.ts")).watchCommand,
  },
  {
    usage: "status <id>",
    about: "show a session's state: step, context use, queue, cost; needs no worker",
    load: async () => (await import("./commands/status.ts")).statusCommand,
  },
  {
    usage: "list",
    aliases: ["ls", "ps"],
    about: "list sessions, newest first",
    load: async () => (await import("./commands/list.ts")).listCommand,
  },
  {
    usage: "messages <id>",
    about: "show the conversation as text: what was said and run, and the results",
    load: async () => (await import("./commands/export.ts")).messagesCommand,
  },
  {
    usage: "context <id>",
    about: "show what fills the context window: system, tools, messages, output buffer, free",
    load: async () => (await import("./commands/context.ts")).contextCommand,
  },
  {
    usage: "compact <id> [focus...]",
    about: "replace old messages by a summary at the next step boundary",
    load: async () => (await import("./commands/compact.ts")).compactCommand,
  },
  {
    usage: "undo-compaction <id>",
    about: "undo the newest compaction round: the messages it replaced are in view again",
    load: async () => (await import("./commands/compact.ts")).undoCompactionCommand,
  },
  {
    usage: "retry <id>",
    about: "go back to before a step (--from-step N), conversation and files, and continue from there",
    load: async () => (await import("./commands/fork.ts")).retryCommand,
  },
  {
    usage: "fork <id>",
    about: "start a new session from an earlier point of this one (--from-step N); this one does not change",
    load: async () => (await import("./commands/fork.ts")).forkCommand,
  },
  {
    usage: "export <id>",
    about: "print session, messages, tool calls, compaction rounds and model calls as one JSON document",
    load: async () => (await import("./commands/export.ts")).exportCommand,
  },
  {
    usage: "report <id> [file]",
    about: "write one self-contained HTML file: timeline, context use, cost, change",
    load: async () => (await import("./commands/export.ts")).reportCommand,
  },
  {
    usage: "pull <id> <dir>",
    about: "copy a session's files, as last saved, into a folder",
    load: async () => (await import("./commands/files.ts")).pullCommand,
  },
  {
    usage: "diff <id>",
    about: "show the change against the files that were put in, as a patch",
    load: async () => (await import("./commands/files.ts")).diffCommand,
  },
  {
    usage: "delete <id>",
    aliases: ["rm"],
    about: "delete a session that has ended, with its files, messages and delegates; asks first",
    load: async () => (await import("./commands/delete.ts")).deleteCommand,
  },
  {
    usage: "purge <id>",
    about: "remove a leaked text from a session that has ended; reads it from stdin",
    load: async () => (await import("./commands/delete.ts")).purgeCommand,
  },
  {
    usage: "allow <id> <domain>",
    about: "let a session's sandbox reach a host name, with --network listed, also while it runs",
    load: async () => (await import("./commands/allow.ts")).allowCommand,
  },
  {
    usage: "apply <id>",
    about: "put a session's change on a new branch of the checkout you are in; checks it first",
    load: async () => (await import("./commands/files.ts")).applyCommand,
  },
  {
    usage: "push <id>",
    about: "push the work of a session on a repository after it has ended",
    load: async () => (await import("./commands/deliver.ts")).pushCommand,
  },
  {
    usage: "pr <id>",
    about: "push the work, and open its pull request or update it",
    load: async () => (await import("./commands/deliver.ts")).pullRequestCommand,
  },
  {
    usage: "review <url>",
    about: "review a pull request by its address, read-only; --post writes the review into it",
    load: async () => (await import("./commands/review.ts")).reviewCommand,
  },
  {
    usage: "follow <id>",
    about: "stay with a session's pull request until it is merged: failed checks, reviews, conflicts",
    load: async () => (await import("./commands/follow.ts")).followCommand,
  },
  {
    usage: "unfollow <id>",
    about: "follow a session's pull request no more; the pull request stays",
    load: async () => (await import("./commands/follow.ts")).unfollowCommand,
  },
  {
    usage: "ports <id>",
    about: "list what listens in a session's sandbox",
    load: async () => (await import("./commands/ports.ts")).portsCommand,
  },
  {
    usage: "forward <id> <port>",
    about: "open a port of this machine that leads to a server in a session's sandbox; Ctrl-C closes it",
    load: async () => (await import("./commands/ports.ts")).forwardCommand,
  },
  {
    usage: "serve",
    about: "serve sessions over HTTP on this machine, with a page that shows them live; Ctrl-C ends it",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  {
    usage: "codec-server",
    about: "decrypt for Temporal's Web UI what LONGHAUL_CODEC_KEYS encrypted; Ctrl-C ends it",
    load: async () => (await import("./commands/codec-server.ts")).codecServerCommand,
  },
  {
    usage: "worker",
    about: "run a worker in the foreground until it is stopped",
    load: async () => (await import("./commands/local-services.ts")).workerCommand,
  },
  {
    usage: "up",
    about: "bring up local services and a worker in the foreground; Ctrl-C ends them",
    load: async () => (await import("./commands/local-services.ts")).upCommand,
  },
  {
    usage: "down",
    about: "stop the local worker and services that longhaul started; data is kept",
    load: async () => (await import("./commands/local-services.ts")).downCommand,
  },
  {
    usage: "database client <name>",
    about: "for operators: make a Postgres address that shows one person's sessions (--revoke removes it)",
    load: async () => (await import("./commands/database.ts")).databaseCommand,
  },
  {
    usage: "models [filter]",
    about: "list models with context window and price, those with a key first",
    load: async () => (await import("./commands/models.ts")).modelsCommand,
  },
  {
    usage: "mcp <what> [server]",
    about: "MCP servers of the configuration: list them; test, log in to or log out of one",
    load: async () => (await import("./commands/mcp.ts")).mcpCommand,
  },
  {
    usage: "doctor",
    about: "show what is found, what is missing and how to fix it; each setting and its source",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
  {
    usage: "completion <shell>",
    about: "print a script that completes commands, flags and ids in bash, zsh or fish",
    load: async () => (await import("./commands/completion.ts")).completionCommand(commandList),
  },
];

export const commandList: readonly CommandEntry[] = listed.map((entry) => ({
  name: entry.usage.split(" ", 1)[0] ?? "",
  ...entry,
}));
