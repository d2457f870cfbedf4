import { z } from "zod";
import { oneLine } from "./paths.ts";
import { failure, typedTool } from "./tool.ts";

const input = z.strictObject({
  thread: z.string().min(1).describe("As the round names it."),
  text: z.string().trim().min(1).max(10_000),
  outcome: z.enum(["fixed", "answered", "declined"]).describe("What you did about it."),
});

/** Offered in sessions that stay with their pull request. It is written once the work is pushed; the last text for a thread counts. */
export const replyReview = typedTool({
  name: "reply_review",
  description: "Answers a review thread of this round, once your work is pushed.",
  input,
  readOnly: false,
  changesFiles: false,
  about: ({ thread, outcome }) => oneLine(`${outcome}: ${thread}`, 60),
  run: async ({ thread, text, outcome }, { follow }) => {
    const refused =
      follow === undefined ? NO_ROUND : await follow.keep({ kind: "thread", target: thread, text, outcome });
    if (refused !== undefined) return failure(refused);
    const ifNot =
      outcome === "fixed" ? " If nothing is pushed in this round, it is written as an answer." : "";
    return { text: `It is written when your work of this round is pushed.${ifNot}` };
  },
});

/** For both tools of a round. */
export const NO_ROUND = "No round of following a pull request is open: nothing was kept.";
