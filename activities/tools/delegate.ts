import { z } from "zod";
import { failure } from "./failure.ts";
import { typedTool } from "./tool.ts";

export const DELEGATE = "delegate";
/** Longest task; longer ones belong in a file of the workspace. Source: ours, some 5,000 tokens. */
const MAX_TASK_CHARS = 20_000;

export const delegateInput = z.strictObject({
  task: z
    .string()
    .trim()
    .min(1)
    .max(MAX_TASK_CHARS)
    .describe(
      "All that it needs to know: it does not see this conversation. Say what its answer is to contain.",
    ),
  access: z
    .enum(["read", "write"])
    .default("read")
    .describe("write: its changes of files come back to /workspace. read: they are thrown away."),
  max_steps: z.number().int().min(1).max(10_000).optional().describe("Stop it after so many steps."),
  model: z.string().min(1).max(200).optional().describe("Another of this session's models."),
});
export type DelegateInput = z.infer<typeof delegateInput>;

/** Performed by the workflow, as a separate session; only an invalid input reaches the worker's tools. */
export const delegate = typedTool({
  name: DELEGATE,
  description:
    "Gives a task to another agent, which works on a copy of /workspace in a sandbox of its own, and returns its last answer. " +
    "Use it for work that would fill this conversation (a long search, a look through many files) or that can be done beside " +
    "other work: several calls in one answer run at the same time. It has your tools but this one, starts without installed " +
    "dependencies and running processes, and cannot ask you anything. With access: write, each file that it changed is taken " +
    "over if it was not changed here meanwhile; those that were are named. Give parallel delegates different files.",
  input: delegateInput,
  readOnly: false,
  about: ({ task }) => task,
  run: async () => failure("This session cannot delegate. Do it yourself."),
});
