/** Options of a session that a program starts. */

export interface StartOptions {
  /** Your own id: the same id and task again attaches to the session. */
  readonly id?: string;
  readonly model?: string;
  /** A folder that is copied in. */
  readonly workspace?: string;
  /** A repository that the worker clones, instead of a folder. */
  readonly repo?: string;
  readonly ref?: string;
  readonly maxSteps?: number;
  readonly maxCostUsd?: number;
  /** Time limit in ms from the start. */
  readonly deadlineMs?: number;
  /** `default`: no one is asked, the model's own default is used; `deny`: the model cannot ask either. */
  readonly questions?: "ask" | "default" | "deny";
  /** A JSON Schema: the last answer is JSON that fits it, in `output` of `status` and of the event `session:ended`. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** 1 to 5: 1 goes first when there are too few workers. Default 3. */
  readonly priority?: number;
  /** The tenant: tenants take turns if workers are short. */
  readonly tenant?: string;
  /** Paths of images and PDFs that belong to the task. */
  readonly images?: readonly string[];
}
