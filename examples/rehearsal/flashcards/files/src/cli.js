// The command line: finds the command, loads the collection, saves it when it changed, turns errors into words.
// Exit codes: 0 done, 1 it failed, 2 wrongly called.

import { join } from "node:path";
import { UsageError } from "./args.js";
import { COMMANDS } from "./commands.js";
import { dayOf, isDay } from "./days.js";
import { load, save, StoreError } from "./store.js";

/**
 * @param io {out(text), err(text), ask(question): Promise<string | undefined>}
 * @param outer {env, now(), fetch}: everything from outside, so that tests can set it
 */
export async function runCli(argv, io, { env, now, fetch }) {
  const [name = "help", ...rest] = argv;
  if (["help", "--help", "-h"].includes(name)) {
    io.out(help());
    return 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (command === undefined) throw new UsageError(`There is no command "${name}".`);
    const path = env.RECALL_FILE || join(env.HOME || ".", ".recall.json");
    const before = await load(path);
    const context = { collection: before, day: dayFor(env, now), io, env, fetch, path };
    const after = (await command.run(rest, context)) ?? before;
    if (after !== before) await save(path, after);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      io.err(`${error.message}\n${command ? `Usage: recall ${command.usage}` : 'Try "recall help".'}`);
      return 2;
    }
    const expected = error instanceof RangeError || error instanceof StoreError;
    io.err(expected ? error.message : `It failed: ${error.message}`);
    return 1;
  }
}

// RECALL_TODAY makes a day out of turn possible: for tests, and for looking at what comes tomorrow.
function dayFor(env, now) {
  const day = env.RECALL_TODAY;
  if (day === undefined || day === "") return dayOf(now());
  if (!isDay(day)) throw new UsageError(`RECALL_TODAY is a day such as 2026-03-01, not "${day}".`);
  return day;
}

function help() {
  const lines = Object.values(COMMANDS).map(({ usage, about }) => `  ${usage.padEnd(52)} ${about}`);
  return [
    "recall: flashcards with spaced repetition",
    "",
    ...lines,
    "",
    "The cards are in ~/.recall.json, or in the file that RECALL_FILE names.",
    "Queries: words, tag:x, deck:x, is:due, is:new, is:suspended, is:leech; a minus in front turns one round.",
  ].join("\n");
}
