import { z } from "zod";
import { ToolFailure } from "./failure.ts";
import { typedTool } from "./tool.ts";

/** Longest plan: people read it as a whole. Source: ours. */
const MAX_PLAN_CHARS = 20_000;

const input = z.strictObject({
  plan: z
    .string()
    .trim()
    .min(1)
    .max(MAX_PLAN_CHARS)
    .describe("The plan in Markdown: what will be changed, in which order, and how it will be checked."),
});

export type ExitPlanInput = z.infer<typeof input>;

/** Performed by a person, as `ask_user` is; only sessions in plan mode have it. */
export const exitPlan = typedTool<ExitPlanInput>({
  name: "exit_plan",
  description:
    "Shows your plan to the person and waits until they approve it. Before that, nothing in /workspace can be changed: " +
    "read and try out what you need, and call this when the plan is complete.",
  input,
  readOnly: true,
  about: ({ plan }) => plan,
  run: () => {
    throw new ToolFailure("No one can approve a plan here. Answer with the plan, without calling tools.");
  },
});
