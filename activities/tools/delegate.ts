import { z } from "zod";
import { failure, typedTool } from "./tool.ts";

export const DELEGATE = "delegate";
/** Longest task; longer ones belong in a file of the workspace. Chosen: some 5,000 tokens. */
const MAX_TASK_CHARS = 20_000;

export const delegateInput = z.strictObject({
  task: z
    .string()
    .trim()
    .min(1)
    .max(MAX_TASK_CHARS)
    .describe("All it needs to know, as it does not see this conversation, and what to answer."),
  access: z
    .enum(["read", "write"])
    .default("read")
    .describe(
      "write copies the files that it changed back, except those changed here meanwhile; read discards its changes.",
    ),
  max_steps: z.number().int().min(1).max(10_000).optional().describe("Stop it after so many steps."),
  model: z.string().min(1).max(200).optional().describe("Another of this session's models."),
});
export type DelegateInput = z.infer<typeof delegateInput>;

/** Performed by the workflow, as a separate session; only an invalid input reaches the worker's tools. */
export const delegate = typedTool({
  name: DELEGATE,
  description:
    "Gives a task to another agent with a copy of /workspace in its own sandbox, and returns its last answer. For work that would " +
    "fill this conversation or can run beside other work: calls in one answer run at the same time. It has your tools except " +
    "this one, no installed dependencies or running processes, and cannot ask you. Give parallel delegates different files.",
  input: delegateInput,
  readOnly: false,
  about: ({ task }) => task,
  run: async () => failure("This session cannot delegate. Do it yourself."),
});
