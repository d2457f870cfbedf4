/** Following a pull request until it is merged: what the follower's workflow and its activities exchange. */
import type { Precedence } from "./run-policy.ts";

/** Name under which the workflow is registered. */
export const FOLLOW_WORKFLOW_TYPE = "followSession";
/** `woken`: a hook, or a person, has it look now. `goOn`: a person gives it new bounds. */
export const FOLLOW_SIGNALS = { woken: "woken", goOn: "goOn" } as const;

/** Session ids contain no colon, so a follower and a session never use the same workflow id. */
const PREFIX = "follow:";

export const followWorkflowId = (sessionId: string): string => `${PREFIX}${sessionId}`;
export const sessionOfFollower = (workflowId: string): string => workflowId.slice(PREFIX.length);

/** `lost`: nobody has found it for a day. `stopped`: a person wanted no more. */
export const PULL_REQUEST_ENDS = ["merged", "closed", "lost", "stopped"] as const;
export type PullRequestEnd = (typeof PULL_REQUEST_ENDS)[number];
/** `paused`: it is looked at, and the session is told nothing until a person continues it. */
export type FollowState = "following" | "paused" | PullRequestEnd;

/** What a look came to, and what the Web UI says of it, in Markdown. */
export type FollowLook = { readonly details?: string } & (
  | {
      readonly kind: "wait";
      readonly lookMs: number;
      readonly line: string;
      /** Only a person goes on. */
      readonly isPaused?: true;
    }
  /** The session works on this round: it is started if it is not. */
  | {
      readonly kind: "round";
      readonly round: number;
      readonly lookMs: number;
      readonly line: string;
      /** The session, and the round's message on one line. */
      readonly sessionId: string;
      readonly about: string;
      readonly precedence?: Precedence;
    }
  | {
      readonly kind: "over";
      readonly end: PullRequestEnd;
      readonly line: string;
      /** The session whose run is to end, too. */
      readonly stopsSession?: string;
    }
);

export type FollowNotice = "follow:paused" | "follow:ended";

/** What a follower's run returns, and what the Web UI shows as its result. */
export interface EndedFollow {
  readonly end: PullRequestEnd;
  readonly rounds: number;
}

/** What a person, or the session's own settings, want of a follower. */
export interface FollowOrder {
  /** So many rounds more. */
  readonly rounds?: number;
  /** So long from now. */
  readonly days?: number;
  /** USD of these rounds together. */
  readonly maxCostUsd?: number;
}

export interface FollowActivities {
  /**
   * Begins to follow, or goes on after a pause. Idempotent for the same order within one run.
   * @throws BadConfiguration (fatal) if the session has no open pull request, or another session follows it
   */
  openFollow(input: FollowOrder): Promise<void>;
  /**
   * Reads the pull request, decides, and stores what it decided; idempotent: an open round is returned again. A round's message waits
   * in the session's queue before this returns.
   */
  lookAtPullRequest(): Promise<FollowLook>;
  /** Stores that it is over, and tells what is to be told. Idempotent. `why`: what went wrong. */
  closeFollow(input: { readonly end: PullRequestEnd; readonly why?: string }): Promise<EndedFollow>;
  /** Tells the operator's address. It may come twice, with the same id. @throws Error (retryable) if the address does not take it */
  notifyFollow(input: { readonly event: FollowNotice }): Promise<void>;
}
