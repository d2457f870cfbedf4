/** What the person of the recorded task says: written by hand for it, after this project's own rules. */

export const TASK = `You take over the work on Longhaul, a coding agent on Temporal that lies in /workspace. The packages are installed; tsc, vitest, oxlint and node are on the PATH.
The work is a list of changes, each is told when it is due. Make one whole before the next: look for what it touches, change it, check it, commit it.
Unit tests run with \`vitest run --project unit FILE\`; the other projects need services that are not here, so never start them.
Rules for all of it: a source file must never be longer than 300 lines. Names of activities, signals, queries and events are recorded, so you must never rename one. A shipped migration must never be edited; only new ones are added. Comments say why, never what. Every exported thing must have a docstring. Do not add a dependency. Names of tests must be sentences in the present tense.
The first change: `;

/** Said while the agent works, one after another. */
export const GUIDANCE: readonly string[] = [
  "While you are at it: paths in messages for people must always be in quotes.",
  "I have seen a bare number in there. Units must be in the name: timeoutMs, maxBytes.",
  "Leave the rehearsal alone today, somebody else works on it. Do not touch worker/rehearsal.",
  "One more thing. Never catch an error without calling rethrowIfCancelled first in an activity.",
  "The commits look good. Keep their subjects below 120 characters, always.",
  "If a check takes longer than two minutes, stop it and tell me. I only have two cores here.",
  "The engine on the build machine is podman, so do not rely on anything that only Docker has.",
  "What you wrote about sandboxes was read wrong by two people. Say sandbox for the place and container only for Docker's object.",
  "Do not wait for anything with a fixed sleep in tests, always wait for a condition.",
  "Documents must follow in the same commit as the code, not later.",
  "Please never print a whole lock file again, it says nothing.",
  "Good. From now on always run oxlint on what you changed before you commit.",
];

/** Said after the agent had ended its turn; the next change follows. */
export const RETURNS: readonly string[] = [
  "Looks right, I have pushed it. You must keep the ports free of Docker's own types, also in what follows. The next change: ",
  "Back from lunch. The review wants one thing kept: the public functions of the client must not change their order of arguments. The next change: ",
  "All green here. Decisions under docs/decisions are never rewritten, only added to; keep to that. The next change: ",
  "Merged. A colleague reads along now, so always say in one sentence why before you change a file. The next change: ",
  "Thanks. Nothing of this may make a step slower: do not add a query to the path of a step. The next change: ",
];
