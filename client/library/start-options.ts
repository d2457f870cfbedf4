/** What a program says of a session that it starts. */

export interface StartOptions {
  /** Of your choice: the same id and task again attaches to the session. */
  readonly id?: string;
  readonly model?: string;
  /** A folder that is copied in. */
  readonly workspace?: string;
  /** A repository that the worker clones, instead of a folder. */
  readonly repo?: string;
  readonly ref?: string;
  readonly maxSteps?: number;
  readonly maxCostUsd?: number;
  /** Within so many ms. */
  readonly deadlineMs?: number;
  /** `default`: nobody is asked, the model's own default is taken; `deny`: the model cannot ask either. */
  readonly questions?: "ask" | "default" | "deny";
  /** A JSON Schema: the last answer is JSON by it, in `output` of `status` and of the event `session:ended`. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** 1 to 5: 1 goes first when there are too few workers. Default 3. */
  readonly priority?: number;
  /** For whom it works: tenants take turns where workers are short. */
  readonly tenant?: string;
  /** Paths of images and PDFs that belong to the task. */
  readonly images?: readonly string[];
}
