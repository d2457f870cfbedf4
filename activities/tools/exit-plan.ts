import { z } from "zod";
import { ToolFailure, typedTool } from "./tool.ts";

/** Longest plan: people read it as a whole. */
const MAX_PLAN_CHARS = 20_000;

const input = z.strictObject({
  plan: z
    .string()
    .trim()
    .min(1)
    .max(MAX_PLAN_CHARS)
    .describe("In Markdown: what will be changed, in which order, and how it will be checked."),
});

export type ExitPlanInput = z.infer<typeof input>;

/** Performed by a person, as `ask_user` is; only sessions in plan mode have it. */
export const exitPlan = typedTool<ExitPlanInput>({
  name: "exit_plan",
  description:
    "Shows your complete plan to the person and waits until they approve it. Before that, nothing in /workspace can be changed.",
  input,
  readOnly: true,
  about: ({ plan }) => plan,
  run: () => {
    throw new ToolFailure("No one can approve a plan here. Answer with the plan, without calling tools.");
  },
});
