/** Events of what becomes of the work, in words: verified, pushed, opened as a pull request, followed until it is merged. */
import { listLeftOut } from "../../activities/contract/delivery.ts";
import type { EventData, EventType } from "../../activities/store/event.ts";
import { cutChars } from "../../activities/text/cut.ts";
import { dollars, duration, plural } from "../../activities/text/format.ts";
import { harmlessLine, present } from "../console/format.ts";
import { notice, quiet, warn, type Describe, type Sentence } from "./sentence.ts";
import { VERIFIED_WORDS } from "./verified-words.ts";

const NAMES_CHARS = 200;
const LINE_CHARS = 300;
const REASON_CHARS = 500;
const COMMAND_CHARS = 120;
const LEFT_OUT_CHARS = 400;
const COMMIT_CHARS = 12;

const ENDS = {
  merged: "the pull request was merged",
  closed: "the pull request was closed",
  lost: "the pull request was not to be found for a day",
  stopped: "it is not followed any more",
} as const;

export const DELIVERY_SENTENCES: {
  readonly [Type in Extract<EventType, `${"follow" | "git" | "verify"}:${string}`>]: Describe<Type>;
} = {
  "verify:started": ({ command, round }) => [
    notice(
      `verifying${round === 0 ? "" : ` again (round ${round})`}: ${harmlessLine(command, COMMAND_CHARS)}`,
    ),
  ],
  "verify:ended": (data) => verified(data),
  "git:fetched": ({ url, ref, commit, branch }) => [
    quiet(
      `cloned ${harmlessLine(url, 200)} at ${harmlessLine(ref, 100)} (${shortened(commit)}), on ${branch}`,
    ),
  ],
  "git:pushed": ({ branch, commit, commits, forced, from, remarks }) => {
    const over = forced === true ? ", over commits that an abandoned attempt had pushed" : "";
    const branched = from === undefined ? "" : `, from the session's own branch ${harmlessLine(from, 100)}`;
    const text = `pushed ${plural(commits, "commit")} to ${branch} (${shortened(commit)})${branched}${over}`;
    return [{ tone: "good", mark: "⇡", text }, ...remarked(remarks)];
  },
  "git:refused": ({ branch, reason }) => [
    warn(`${branch} was not delivered: ${harmlessLine(reason, REASON_CHARS)}`),
  ],
  "git:pull-request": ({ url, created, state, remarks }) => {
    const changed = created ? "opened" : "updated";
    const how = state === undefined ? changed : `is ${state}, and stays so`;
    const text = `pull request ${how}: ${harmlessLine(url, 300)}`;
    return [{ tone: "good", mark: "⇡", text }, ...remarked(remarks)];
  },
  "git:review": ({ url, commit, comments, inSummary, head, wasThere }) => {
    const address = harmlessLine(url, 300);
    if (wasThere === true)
      return [notice(`${shortened(commit)} was reviewed before: nothing more is written into ${address}`)];
    const moved = head === undefined ? "" : `, not of ${shortened(head)}, to which its branch has moved`;
    const listed = inSummary === 0 ? "" : `, ${inSummary} in its summary`;
    const text = `review of ${shortened(commit)}${moved}: ${plural(comments, "comment")} on lines${listed}: ${address}`;
    return [{ tone: "good", mark: "⇡", text }];
  },
  "git:left-out": ({ count, files }) => [
    warn(`not delivered: ${harmlessLine(listLeftOut(files, count, LEFT_OUT_CHARS), 2 * LEFT_OUT_CHARS)}`),
  ],
  "follow:started": ({ url, rounds, until, maxCostUsd }) => [
    notice(
      `follows ${harmlessLine(url, LINE_CHARS)} until it is merged: at most ${plural(rounds, "round")}, ${dollars(maxCostUsd)}, until ${until}`,
    ),
  ],
  "follow:looked": ({ line }) => [quiet(`pull request: ${harmlessLine(line, LINE_CHARS)}`)],
  "follow:round": ({ number, reasons }) => [
    notice(`round ${number}: ${harmlessLine(reasons.join("; "), REASON_CHARS)}`, "↻"),
  ],
  "follow:answered": ({ threads }) => [quiet(`answered in ${plural(threads, "review thread")}`)],
  "follow:updated": ({ base }) => [
    quiet(`pull request: its base (${harmlessLine(base, 12)}) was merged into it`),
  ],
  "follow:ready": () => [quiet("pull request: ready for review")],
  "follow:waiting": ({ for: what }) => [quiet(`pull request: waits for ${harmlessLine(what, REASON_CHARS)}`)],
  "follow:paused": ({ reason }) => [warn(`following is paused: ${harmlessLine(reason, REASON_CHARS)}`)],
  "follow:ended": ({ end, rounds, costUsd, hours }) => {
    const cost = costUsd === null ? "" : `, ${dollars(costUsd)}`;
    const text = `${ENDS[end]} (${plural(rounds, "round")}${cost}, ${hours.toFixed(1)} h)`;
    return [end === "merged" ? { tone: "good", mark: "✓", text } : notice(text)];
  },
};

function verified({ command, outcome, how, ms, tail, changed = [] }: EventData["verify:ended"]): Sentence[] {
  const what = `${harmlessLine(command, COMMAND_CHARS)}: ${VERIFIED_WORDS[outcome]} (${harmlessLine(how, REASON_CHARS)}, ${duration(ms)})`;
  const files = changed.map((path) => harmlessLine(path, NAMES_CHARS)).join(", ");
  return present(
    outcome === "passed" ? { tone: "good" as const, mark: "✓", text: what } : { ...warn(what), detail: tail },
    files !== "" &&
      warn(`changed files that decide about the outcome: ${harmlessLine(files, LEFT_OUT_CHARS)}`),
  );
}

const remarked = (remarks: readonly string[] = []): Sentence[] =>
  remarks.map((remark) => warn(harmlessLine(remark, REASON_CHARS)));

const shortened = (commit: string) => cutChars(commit, COMMIT_CHARS);
