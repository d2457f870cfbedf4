/** `longhaul review URL`: an ordinary session that reads a pull request and answers with a review. */
import type { Command } from "commander";
import { Option } from "commander";
import { NETWORKS } from "../../activities/config/sandbox-settings.ts";
import { readReview, type ReviewFinding, type Review } from "../../activities/contract/review.ts";
import { plural } from "../../activities/text/format.ts";
import { harmlessLine, present, shellWord } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { collect, positiveAmount, positiveInteger } from "../sessions/flag-values.ts";
import { deadlineFromNow } from "../sessions/run-flags.ts";
import { prepareReview, type ReviewFlags } from "../review/prepare-review.ts";

export function reviewCommand(command: Command, output: Output) {
  command
    .argument("<url>", "address of the pull request, as your browser shows it")
    .option("--post", "write the review into the pull request; without it, it is only printed")
    .option("--focus <words>", "what to look at above all, such as security")
    .option("--model <provider/model>", "model to ask")
    .option("--max-steps <n>", "stop after this many steps", positiveInteger)
    .option("--max-cost <usd>", "stop when the session has cost this much", positiveAmount)
    .option("--deadline <when>", "end within a time such as 20m, or at an ISO time", deadlineFromNow)
    .addOption(
      new Option("--network <network>", "what the sandbox can reach (default: listed)").choices(NETWORKS),
    )
    .option("--allow-domain <name>", "with listed: a host name, *.name, or a group; may be repeated", collect)
    .option("--config <file>", "configuration file (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .option("--id <id>", "id of the session")
    .option("--json", "the review as one JSON document")
    .option("--no-setup", "start no services or worker: they run elsewhere (or LONGHAUL_NO_SETUP=1)");
  return async (url: string, { json = false, ...flags }: ReviewFlags & { readonly json?: boolean }) => {
    const { start, config } = await prepareReview(url, flags, output.note);
    // Wrong usage is reported before the drivers are loaded.
    const [{ withPreparedServices }, { startSession }, { watchSession }] = await Promise.all([
      import("../sessions/with-session.ts"),
      import("../sessions/start-session.ts"),
      import("../watch/watch-session.ts"),
    ]);
    const say = (line: string) => output.note(`${output.style("dim", line)}\n`);
    return withPreparedServices({ ...flags, image: config.run.sandbox.image }, say, async (services) => {
      const { id } = await startSession(services, { ...start, acceptEnded: true });
      output.note(`session ${output.style("bold", id)}\n`);
      return watchSession({
        services,
        sessionId: id,
        afterSeq: 0,
        json: false,
        output: printing(output, json),
        closing: () => Promise.resolve(present(`Ask it about its review: longhaul say ${shellWord(id)} "…"`)),
      });
    });
  };
}

/** Prints a review for its reader; a session that has none ends as any other. */
function printing(output: Output, isJson: boolean): Output {
  return {
    ...output,
    result: (text) => {
      const review = reviewIn(text);
      if (review === undefined) output.result(text);
      else if (isJson) output.json(review, 2);
      else output.result(reviewText(review));
    },
  };
}

function reviewIn(text: string): Review | undefined {
  try {
    return readReview(JSON.parse(text));
  } catch {
    return undefined;
  }
}

const VERDICT_WORDS = {
  approve: "approves it",
  comment: "comments",
  "request-changes": "wants changes",
} as const;

/** As a person reads it. */
export function reviewText({ summary, verdict, findings }: Review): string {
  const rows = findings.map((finding) => `${placeOf(finding)} (${finding.severity})\n${indented(finding)}`);
  const count = findings.length === 0 ? "no findings" : plural(findings.length, "finding");
  return `${[summary, `It ${VERDICT_WORDS[verdict]}: ${count}.`, ...rows].join("\n\n")}\n`;
}

function placeOf({ path, line, endLine, side }: ReviewFinding): string {
  const lines = line === undefined ? "" : `:${line}${endLine === undefined ? "" : `-${endLine}`}`;
  return `${harmlessLine(path, 300)}${lines}${side === "old" ? " (before the change)" : ""}`;
}

function indented({ text, suggestion }: ReviewFinding): string {
  const body = suggestion === undefined ? text : `${text}\nInstead:\n${suggestion}`;
  return body
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}
