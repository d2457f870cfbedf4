/** Bases that are made without a session, for all who may fetch their repository: what the workflow and its activities exchange. */

/** Name under which the workflow is registered. */
export const WARM_WORKFLOW_TYPE = "warmRepository";

/** Session ids contain no colon. A schedule appends its time. */
export const warmWorkflowId = (warm: string): string => `warm:${warm}`;

/** The input of the workflow and of its activities: the id of a row of `warms`. */
export interface WarmInput {
  readonly warm: string;
}

/** A Docker host of the installation. */
export interface WarmHost {
  readonly host: string;
  /** Absent: the workflows' own queue. */
  readonly taskQueue?: string | undefined;
}

export interface WarmPlan {
  readonly hosts: readonly WarmHost[];
  /** How long the project's set-up may take, in ms. */
  readonly setupMs: number;
  /** How long the work may wait for a host before that counts as away, in ms. */
  readonly hostMs: number;
}

/** `made`: a new base; `there`: the commit's base was there already; `failed`: the list has the reason. */
type WarmOutcome = "made" | "there" | "failed" | "away";

export interface WarmedHost {
  readonly host: string;
  readonly outcome: WarmOutcome;
}

export interface WarmActivities {
  /** On which hosts bases are made. */
  planWarm(input: WarmInput): Promise<WarmPlan>;
  /** Makes the base of the default branch's newest commit on one host, unless it is there. */
  warmHost(input: WarmInput): Promise<WarmedHost>;
  /** Stores that no worker of a host took its part. */
  noteAway(input: WarmInput & Pick<WarmHost, "host">): Promise<void>;
}

export const warmLine = (hosts: readonly WarmedHost[]): string =>
  hosts.map(({ host, outcome }) => `${host}: ${outcome}`).join(", ");
