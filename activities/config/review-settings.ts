/** Sessions that review a pull request: their settings, and what they may not do. */
import { z } from "zod";

/** The group `review`. */
export const reviewConfigSchema = z.strictObject({
  /** Whether a verdict `approve` is posted as one, instead of as a comment. */
  mayApprove: z.boolean().default(false),
});

/** Set for a session that reviews a pull request. It changes nothing, and nothing of it is pushed. */
export const sessionReviewSchema = z.object({
  url: z.string(),
  /** The pull request's, on the forge of the session's repository. */
  number: z.number().int().min(1),
  /** Whether the review is written into the pull request. */
  post: z.boolean(),
  mayApprove: z.boolean(),
});
export type SessionReview = z.infer<typeof sessionReviewSchema>;

/** Settings that decide whether a session may write to its workspace. */
export interface WorkspaceRights {
  /** It plans, and no person has approved the plan. */
  readonly plan?: boolean | undefined;
  readonly reviews?: SessionReview | undefined;
}

/** Whether a session's workspace is mounted read-only. */
export const isReadOnly = ({ plan, reviews }: WorkspaceRights): boolean =>
  plan === true || reviews !== undefined;

/** The same settings while the workspace gets its first files. */
export const whileFilled = <Config extends WorkspaceRights>(config: Config): Config => ({
  ...config,
  plan: false,
  reviews: undefined,
});
