/** Settings of tasks that the agent delegates to separate sessions (`delegate` of longhaul.yaml). */
import { z } from "zod";
import { modelTargetSchema } from "./model-target.ts";

const count = z.number().int().positive();

export const delegateConfigSchema = z.strictObject({
  /** False: the agent has no `delegate` tool. */
  enabled: z.boolean().default(true),
  /** How many delegates run at once for one session; further ones wait. Source: ours, each has its own sandbox. */
  maxConcurrent: count.max(32).default(4),
  /** How many delegates a session may have in total. Source: ours. */
  maxPerSession: count.max(1_000).default(50),
  /** Most steps of one delegate. */
  maxSteps: count.default(100),
  /** The file access that a delegate may get: a copy, or one whose changes come back. */
  access: z
    .array(z.enum(["read", "write"]))
    .min(1)
    .default(["read", "write"]),
  /** The delegates' model; `inherit`: the session's own. */
  model: z.string().min(1).default("inherit"),
});

/** The delegate settings as stored with a session, with their model resolved. */
export const sessionDelegateSchema = delegateConfigSchema.omit({ model: true }).extend({
  target: z.object(modelTargetSchema.shape).optional(),
});
export type DelegateSettings = z.infer<typeof sessionDelegateSchema>;
