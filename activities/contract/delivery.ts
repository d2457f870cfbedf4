/** What became of a session's work on a repository. */

/** `none`: nothing was to be delivered, or there was nothing. */
export type DeliveryState = "none" | "done" | "refused";

/** A delivery that a person asks for when the run is over: that run delivers, and asks no model. */
export interface DeliveryOrder {
  readonly push: boolean;
  readonly pr: "none" | "draft" | "ready";
  readonly branch?: string;
  /** Of the pull request; default the task's first line. */
  readonly title?: string;
}

export interface FetchedRepository {
  readonly commit: string;
  /** Of the pack; 0 if it was there already. */
  readonly bytes: number;
}

export interface PublishInput {
  /** Steps finished. */
  readonly step: number;
  readonly kind: "push" | "pull-request";
  /** Of a push at the end: what is not committed is committed first. */
  readonly end?: true;
  /** Another branch than the session's. */
  readonly branch?: string;
  /** Of a pull request. */
  readonly draft?: boolean;
  readonly title?: string;
}

export interface Publication {
  /** `nothing`: there was nothing to deliver that is not there. */
  readonly outcome: "done" | "refused" | "nothing";
  readonly branch: string;
  readonly commit?: string;
  /** Of a push: how many commits the branch has that the session's start has not. */
  readonly commits?: number;
  /** Of a pull request. */
  readonly url?: string;
  readonly number?: number;
  /** Why it was refused, at most 500 characters. */
  readonly reason?: string;
}
