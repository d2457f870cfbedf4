import { z } from "zod";
import { ToolFailure, typedTool } from "./tool.ts";

/** A person may be away for long; after this time the default is used. */
const MAX_TIMEOUT_SECONDS = 30 * 86_400;

const textUpTo = (max: number) => z.string().trim().min(1).max(max);

/** A label alone is taken too; the model sees the longer form only. */
const option = z.preprocess(
  (option) => (typeof option === "string" ? { label: option } : option),
  z.strictObject({ label: textUpTo(200), description: textUpTo(500).optional() }),
);

const input = z
  .strictObject({
    question: textUpTo(2_000).describe("One question, with what they need to know."),
    options: z
      .array(option)
      .min(2)
      .max(6)
      .optional()
      .describe("2 to 6 choices; leave out for a free answer."),
    default: textUpTo(2_000)
      .optional()
      .describe("What you do without an answer; an option if there are any."),
    block: z.boolean().optional().describe("false: the answer comes as a message."),
    timeout_seconds: z.int().min(1).max(MAX_TIMEOUT_SECONDS).optional().describe("Then the default is used."),
  })
  .superRefine(({ options, default: fallback }, context) => {
    const labels = options?.map(({ label }) => label) ?? [];
    if (new Set(labels).size < labels.length)
      context.addIssue({ code: "custom", path: ["options"], message: "two options are the same" });
    if (labels.length > 0 && fallback !== undefined && !labels.includes(fallback))
      context.addIssue({
        code: "custom",
        path: ["default"],
        message: `not among the options: ${labels.join(", ")}`,
      });
  });

export type AskUserInput = z.infer<typeof input>;

/** Performed by a person: `askPerson` and `settleQuestion` take the place of `run`. */
export const askUser = typedTool<AskUserInput>({
  name: "ask_user",
  description:
    "Asks the person and waits for the answer, for days if need be; your other calls run meanwhile. Ask only what they must decide: " +
    "what they want, or what cannot be undone. Do not ask what you can find out.",
  input,
  readOnly: true,
  about: ({ question }) => question,
  run: () => {
    throw new ToolFailure("No one can be asked in this session. Decide yourself, and say what you decided.");
  },
});
