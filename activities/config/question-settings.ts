/** Whether and how long people are asked. */
import { z } from "zod";
import { waitMs } from "./durations.ts";

export const QUESTION_MODES = ["ask", "default", "deny"] as const;

export type QuestionMode = (typeof QUESTION_MODES)[number];

export const questionsSchema = z.strictObject({
  /** `default`: no one is asked, and the model's own default is used; `deny`: the model cannot ask at all. */
  mode: z.enum(QUESTION_MODES).default("ask"),
  /** Time in ms after which a question that has a default is answered with it. Default: never. */
  defaultAfter: waitMs.optional(),
  /** Time in ms with nothing but open questions after which the sandbox is saved and removed until the answer. */
  parkAfter: waitMs.default(600_000),
  /** Most questions per step. Source: ours; other agents take one to four. */
  maxOpen: z.number().int().min(1).max(100).default(8),
});
export type QuestionSettings = z.infer<typeof questionsSchema>;

/** Which calls run, wait for a person's approval, or are denied: the last matching rule applies. */
export const permissionsSchema = z
  .array(
    z.strictObject({
      /** A tool's name; `*` matches any characters, here and in `match`. */
      tool: z.string().min(1).max(100),
      /** A command of a shell line, or a path in the workspace; default: every call of the tool. */
      match: z.string().min(1).max(1_000).optional(),
      action: z.enum(["allow", "ask", "deny"]),
    }),
  )
  .max(200);

/** Sessions older than questions use the defaults. */
export const questionSettings = (settings: QuestionSettings | undefined): QuestionSettings =>
  settings ?? questionsSchema.parse({});
