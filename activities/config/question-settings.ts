/** Whether and how long people are asked. */
import { z } from "zod";
import { waitMs } from "./durations.ts";

export const QUESTION_MODES = ["ask", "default", "deny"] as const;

export type QuestionMode = (typeof QUESTION_MODES)[number];

export const questionsSchema = z.strictObject({
  /** `default`: no one is asked, the model's own default is used; `deny`: the model cannot ask either. */
  mode: z.enum(QUESTION_MODES).default("ask"),
  /** Time in ms after which a question with a default is answered with it. Default: never. */
  defaultAfter: waitMs.optional(),
  /** Time in ms with only open questions after which the sandbox is saved and removed until the answer. */
  parkAfter: waitMs.default(600_000),
  /** Questions of one step. Source: ours; other agents take one to four. */
  maxOpen: z.number().int().min(1).max(100).default(8),
});
export type QuestionSettings = z.infer<typeof questionsSchema>;

/** Which calls run, wait for a person's approval, or do not run: the last rule that matches counts. */
export const permissionsSchema = z
  .array(
    z.strictObject({
      /** A tool's name; `*` matches any characters, here and in `match`. */
      tool: z.string().min(1).max(100),
      /** A command of a shell's line, a path in the workspace; default: every call of the tool. */
      match: z.string().min(1).max(1_000).optional(),
      action: z.enum(["allow", "ask", "deny"]),
    }),
  )
  .max(200);

/** Sessions from before there were questions have the defaults. */
export const questionSettings = (settings: QuestionSettings | undefined): QuestionSettings =>
  settings ?? questionsSchema.parse({});
