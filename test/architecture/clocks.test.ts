import { expect, test } from "vitest";
import { sources } from "./sources.ts";

/**
 * What a wall clock is for: a time that people or files are shown. Whatever lasts is measured by one that does not jump.
 * The local set-up and the rehearsal are left out: they wait for seconds, once.
 */
const ALLOWED: Readonly<Record<string, string>> = {
  "activities/config/models.ts": "whether a model is shut down by now",
  "activities/follow/follow-pull-request.ts": "since when a pull request is followed, which its row says",
  "activities/follow/followed.ts": "when a pull request is looked at, which its row says",
  "activities/forge/calls.ts": "a retry-after given as a date, and a limit's end",
  "activities/git/own-repositories.ts": "times of files",
  "activities/model/ai-sdk.ts": "a retry-after given as a date",
  "activities/sandbox/docker/bases.ts": "how old a volume is, by the time that the engine says",
  "activities/sandbox/docker/session-keys.ts": "how old certificates are, by the time that they say",
  "activities/sandbox/docker/set-up-images.ts": "how old an image is, by the time that its label says",
  "activities/store/workspace-pack.ts": "times of files",
  "activities/runtime/telemetry/report.ts": "when a span ended, which other machines' spans are laid beside",
  "activities/tools/bash-output.ts": "since when a command runs, by the sandbox's own clock",
  "client/batch/batch-document.ts": "how old a batch is, by Postgres' time",
  "client/sessions/run-flags.ts": "a deadline given as a date",
  "client/watch/show.ts": "how long ago an event was",
  "worker/bundle.ts": "times of files",
  "workflows/delivery.ts": "how long ago commits were pushed: the engine's time, which replays",
  "workflows/later-questions.ts": "how long a question was open: the engine's time, which replays",
  "workflows/waits.ts": "the workflow's own time, which is the server's",
  "workflows/limits.ts":
    "how long until a deadline or a limit ends, how long a question was open: the engine's time, which replays",
  "workflows/questions.ts": "how long a question was open: the engine's time, which replays",
  "workflows/coding-agent.ts": "since when a model steps in: the engine's time, which replays",
};

test("durations and deadlines are not taken from a clock that may jump", { tags: ["R46"] }, () => {
  const readers = sources(/^(activities|temporal|worker|client|workflows|examples)\/.*\.ts$/)
    .filter(({ path }) => !/^(client\/setup|examples\/rehearsal)\/|^temporal\/probe/.test(path))
    .filter(({ text }) => text.includes("Date.now()"))
    .map(({ path }) => path);
  expect(readers.toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
});
