/** The outcome of delivering a session's work to its repository. */

/** `none`: no delivery was wanted, or there was nothing to deliver. */
export type DeliveryState = "none" | "done" | "refused";

/** A delivery that a person requests after a run has ended: the new run only delivers and asks no model. */
export interface DeliveryOrder {
  readonly push: boolean;
  readonly pr: "none" | "draft" | "ready";
  readonly branch?: string;
  /** Title of the pull request; defaults to the task's first line. */
  readonly title?: string;
}

export interface FetchedRepository {
  readonly commit: string;
  /** Size of the pack in bytes; 0 if it already existed. */
  readonly bytes: number;
}

export interface PublishInput {
  /** Steps finished. */
  readonly step: number;
  readonly kind: "push" | "pull-request";
  /** For a push at the run's end: uncommitted work is committed first. */
  readonly end?: true;
  /** A branch other than the session's. */
  readonly branch?: string;
  /** For a pull request: open it as a draft. */
  readonly draft?: boolean;
  readonly title?: string;
}

export interface Publication {
  /** `nothing`: everything was already delivered, or there was nothing to deliver. */
  readonly outcome: "done" | "refused" | "nothing";
  readonly branch: string;
  readonly commit?: string;
  /** For a push: number of commits on the branch since the session's start. */
  readonly commits?: number;
  /** For a pull request: its URL. */
  readonly url?: string;
  readonly number?: number;
  /** Why the delivery was refused, at most 500 characters. */
  readonly reason?: string;
}
