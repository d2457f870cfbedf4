/** Settings of tasks that the agent gives to sessions of their own (`delegate` of longhaul.yaml). */
import { z } from "zod";
import { modelTargetSchema } from "./model-target.ts";

const count = z.number().int().positive();

export const delegateConfigSchema = z.strictObject({
  /** False: the agent has no `delegate`. */
  enabled: z.boolean().default(true),
  /** How many work at once for one session; further ones wait. Source: ours, each has a sandbox of its own. */
  maxConcurrent: count.max(32).default(4),
  /** How many a session may have in all. Source: ours. */
  maxPerSession: count.max(1_000).default(50),
  /** Steps of one delegate at most. */
  maxSteps: count.default(100),
  /** What a delegate may be given: a copy of the files, or one whose changes come back. */
  access: z
    .array(z.enum(["read", "write"]))
    .min(1)
    .default(["read", "write"]),
  /** The model that delegates work with; `inherit`: the session's own. */
  model: z.string().min(1).default("inherit"),
});

/** The same as a session keeps it, with its model resolved. */
export const sessionDelegateSchema = delegateConfigSchema.omit({ model: true }).extend({
  target: z.object(modelTargetSchema.shape).optional(),
});
export type DelegateSettings = z.infer<typeof sessionDelegateSchema>;
