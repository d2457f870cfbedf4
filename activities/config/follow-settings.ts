/** Settings of `git.follow`: how a session's pull request is followed until it is merged. */
import { z } from "zod";
import { pauseMs } from "./setting-values.ts";

/** Chosen: more rounds than any pull request should need. */
const MAX_ROUNDS = 50;
const MAX_DAYS = 365;

export const followSchema = z.strictObject({
  /** Whether it is followed once it is open. */
  on: z.boolean().default(false),
  /** How often the session is told what is wrong. */
  rounds: z.number().int().min(1).max(MAX_ROUNDS).default(5),
  /** Since the pull request was opened. */
  days: z.number().positive().max(MAX_DAYS).default(14),
  /** USD that all rounds together may cost. Chosen. */
  maxCostUsd: z.number().positive().max(1_000_000).default(10),
  /** Which checks count: those that the branch requires (all, if it requires none), all, or none. */
  checks: z.enum(["required", "all", "none"]).default("required"),
  /** Nothing has changed for so long before the session is told, in ms. */
  settle: pauseMs.default(90_000),
  /** Whose reviews count: people who may write to the repository, or nobody. */
  reviews: z.enum(["trusted", "none"]).default("trusted"),
  /** Numeric ids of bots whose reviews count, too. */
  reviewBots: z.array(z.number().int().positive()).max(100).default([]),
  /** What the agent is called in comments; without it, `longhaul` and the login of the account whose token is used. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,38}$/, "a name without @, of letters, digits and . _ -")
    .optional(),
  /** Whether a thread is resolved that the session says it has done. */
  resolve: z.enum(["never", "fixed"]).default("fixed"),
  /**
   * What is done when the base moves: nothing; the session is told of conflicts; or the base is also merged by the worker, without a model,
   * where the base's rules demand a branch that is up to date.
   */
  update: z.enum(["never", "conflict", "required"]).default("conflict"),
  /** A draft that the session opened is made ready for review once its checks are green and no thread is open. */
  ready: z.boolean().default(false),
  /** The branch that the session made is removed once it is merged. */
  deleteBranch: z.boolean().default(false),
  /** How often the session may have one check run again on the same commit. */
  rerun: z.number().int().min(0).max(10).default(1),
  /** A person's commits on the branch: nothing more is done, or the session goes on on top of them. */
  onForeignPush: z.enum(["wait", "merge"]).default("wait"),
});
export type FollowSettings = z.infer<typeof followSchema>;
