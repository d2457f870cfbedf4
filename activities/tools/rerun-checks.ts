import { z } from "zod";
import { inWords } from "../text/format.ts";
import { oneLine } from "./paths.ts";
import { NO_ROUND } from "./reply-review.ts";
import { failure, typedTool } from "./tool.ts";

const MAX_CHECKS = 20;

const input = z.strictObject({
  names: z.preprocess(
    (value) => (typeof value === "string" ? [value] : value),
    z.array(z.string().min(1)).min(1).max(MAX_CHECKS).describe("Failed checks of this round."),
  ),
  reason: z.string().trim().min(1).max(1_000).describe("Why it is not the change's."),
});

/** Offered in sessions that stay with their pull request. A push runs all checks anyway. */
export const rerunChecks = typedTool<z.infer<typeof input>>({
  name: "rerun_checks",
  description: "Runs failed checks again after this round, if nothing is pushed.",
  input,
  readOnly: false,
  changesFiles: false,
  about: ({ names }) => oneLine(names.join(", "), 60),
  run: async ({ names, reason }, { follow }) => {
    for (const target of names) {
      const refused =
        follow === undefined
          ? NO_ROUND
          : await follow.keep({ kind: "check", target, text: reason, outcome: "rerun" });
      if (refused !== undefined) return failure(refused);
    }
    return { text: `When this round is over and nothing was pushed, run again: ${inWords(names)}.` };
  },
});
