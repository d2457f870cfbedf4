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
      "Everything that the delegate needs to know: it does not see this conversation. Say what its answer must contain.",
    ),
  access: z
    .enum(["read", "write"])
    .default("read")
    .describe(
      "write: the files that it changes are copied back to /workspace. read: its changes are discarded.",
    ),
  max_steps: z.number().int().min(1).max(10_000).optional().describe("Stop it after this many steps."),
  model: z.string().min(1).max(200).optional().describe("Use another of this session's models."),
});
export type DelegateInput = z.infer<typeof delegateInput>;

/** Performed by the workflow, as a separate session; only an invalid input reaches the worker's tools. */
export const delegate = typedTool({
  name: DELEGATE,
  description:
    "Gives a task to another agent, which works on a copy of /workspace in a separate sandbox, and returns its last answer. " +
    "Use it for work that would fill this conversation (a long search, reading many files) or that can run beside other " +
    "work: several calls in one answer run at the same time. The delegate has your tools except this one, starts without " +
    "installed dependencies and running processes, and cannot ask you anything. With access: write, the files that it changed " +
    "are copied back, except those that were changed here meanwhile, which are named. Give parallel delegates different files.",
  input: delegateInput,
  readOnly: false,
  about: ({ task }) => task,
  run: async () => failure("This session cannot delegate. Do it yourself."),
});
