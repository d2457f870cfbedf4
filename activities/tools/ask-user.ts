import { z } from "zod";
import { ToolFailure } from "./failure.ts";
import { typedTool } from "./tool.ts";

/** A person may be away for long; after this time the default is used. Source: ours. */
const MAX_TIMEOUT_SECONDS = 30 * 86_400;

const words = (max: number) => z.string().trim().min(1).max(max);

const option = z.union([
  words(200),
  z.strictObject({ label: words(200), description: words(500).optional() }),
]);

const input = z
  .strictObject({
    question: words(2_000).describe("One question, with what the person needs to know to answer it."),
    options: z
      .array(option)
      .min(2)
      .max(6)
      .optional()
      .describe("The choices; leave this out for an answer in the person's own words."),
    default: words(2_000)
      .optional()
      .describe("What you will do without an answer; one of the options if there are any."),
    timeout_seconds: z
      .int()
      .min(1)
      .max(MAX_TIMEOUT_SECONDS)
      .optional()
      .describe(
        "Use the default after this many seconds. Without a default or a timeout the question waits, for days if necessary.",
      ),
  })
  .superRefine(({ options, default: fallback }, context) => {
    const labels = options?.map(labelOf) ?? [];
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

const labelOf = (given: z.infer<typeof option>) => (typeof given === "string" ? given : given.label);

/** The options of a question, in order. */
export const optionsOf = (given: AskUserInput): { label: string; description?: string | undefined }[] =>
  (given.options ?? []).map((choice) => (typeof choice === "string" ? { label: choice } : choice));

/** Performed by a person: `askPerson` and `settleQuestion` take the place of `run`. */
export const askUser = typedTool<AskUserInput>({
  name: "ask_user",
  description:
    "Asks the person a question and waits for the answer, however long it takes. Ask what only they can decide: what they want, " +
    "a choice that is theirs, something that cannot be undone. Do not ask what you can find out or try yourself. " +
    "The other calls of the same step run meanwhile.",
  input,
  readOnly: true,
  about: ({ question }) => question,
  run: () => {
    throw new ToolFailure("No one can be asked in this session. Decide yourself, and say what you decided.");
  },
});
