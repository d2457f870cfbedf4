/** Settings of `verify`: commands that decide whether the work is done. */
import { z } from "zod";
import type { VerifyPolicy } from "../contract/verify.ts";
import { timerMs } from "./setting-values.ts";

/** Chosen: as many as a build, its tests and its checks need. */
const MAX_COMMANDS = 20;
const MAX_ROUNDS = 20;

/**
 * Git compares a pattern with a path as it is, and matches nothing by one that no path looks like: then a file that is meant to be
 * protected would not be.
 */
const protectedPattern = z
  .string()
  .max(500)
  .overwrite((pattern) => pattern.replace(/^(?:\.?\/)+/, ""))
  .refine(
    isFromTop,
    "a pattern from the top of the repository, such as test/** or **/conftest.py, without !, .. or empty parts",
  );

function isFromTop(pattern: string): boolean {
  const parts = pattern.replace(/\/$/, "").split("/");
  return !/^!|\0/.test(pattern) && parts.every((part) => !["", ".", ".."].includes(part));
}

const fields = z.strictObject({
  /** Run in this order by the worker in the sandbox; the first that fails ends the look. */
  commands: z
    .array(z.string().max(10_000).regex(/\S/, "a command such as npm test"))
    .min(1)
    .max(MAX_COMMANDS),
  /** How often the model is told of a failure and works on; 0: it is only reported. */
  rounds: z.number().int().min(0).max(MAX_ROUNDS).default(3),
  /** Longest time of one command, in ms. */
  timeout: timerMs.default(15 * 60_000),
  /**
   * `fresh`: in a new sandbox with a clean checkout of the commit that would be delivered, or with the saved files, set up anew; it is
   * removed afterwards. Implied by `onProtected: restore`.
   */
  where: z.enum(["sandbox", "fresh"]).default("sandbox"),
  /** Files that decide about the outcome, as Git's patterns from the top of the repository: `test/`, `package.json`, or `**\/conftest.py` in any folder. */
  protect: z.array(protectedPattern).max(100).default([]),
  /**
   * What a change of one means: it is named; or the work counts as not verified, too; or the commands run, in a fresh sandbox, with
   * these files as the session found them, while the work keeps its own.
   */
  onProtected: z.enum(["report", "restore", "refuse"]).default("report"),
  /** Whether the commands run before the first step, too: what fails then and in the same way at the end is not held against the work. */
  baseline: z.boolean().default(false),
  /** Work that is not verified: delivered as a draft that says so; or not delivered. */
  onFail: z.enum(["draft", "hold"]).default("draft"),
  /** A file that the commands write, from the top of the workspace: the number in it tells attempts apart, the larger the better. */
  result: z
    .string()
    .max(500)
    .regex(/^(?![/\\])(?!(?:.*[/\\])?\.\.(?:[/\\]|$))[^\0]+$/, "a path inside the workspace")
    .optional(),
  /** Whether the lines are counted that the work changes outside of tests: for a choice among attempts. */
  countLines: z.boolean().default(false),
});

export const verifySchema = fields.superRefine(({ protect, onProtected }, context) => {
  if (onProtected === "restore" && protect.length === 0)
    context.addIssue({
      code: "custom",
      path: ["protect"],
      message: "onProtected: restore needs the files that are restored, such as test/**",
    });
});
export type VerifySettings = z.infer<typeof verifySchema>;

/** Whether the commands run in a sandbox of their own. */
export const isFresh = ({ where, onProtected }: Pick<VerifySettings, "where" | "onProtected">): boolean =>
  where === "fresh" || onProtected === "restore";

/** What the workflow needs of them. A look may run all commands twice: they may have changed files. */
export function toVerifyPolicy(settings: VerifySettings | undefined): VerifyPolicy | undefined {
  if (settings === undefined) return undefined;
  const { rounds, commands, timeout, onFail, onProtected, baseline } = settings;
  return {
    rounds,
    timeoutMs: 2 * commands.length * timeout,
    baseline: baseline ? true : undefined,
    holds: onFail === "hold" ? true : undefined,
    refusesChangedChecks: onProtected === "refuse" ? true : undefined,
  };
}
