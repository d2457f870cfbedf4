/** Options of a session that a program starts. */
import type { AttachmentSource } from "../sessions/attachments.ts";

export interface StartOptions {
  /** Your own id: the same id and task again attaches to the session. */
  readonly id?: string;
  readonly model?: string;
  /** A folder that is copied into the sandbox. */
  readonly workspace?: string;
  /** What else of it stays here, in the form of lines of `.gitignore`; what Git tracks goes along in any case. */
  readonly leaveOut?: readonly string[];
  /** A repository that the worker clones, instead of a folder. */
  readonly repo?: string;
  readonly ref?: string;
  readonly maxSteps?: number;
  readonly maxCostUsd?: number;
  /** Time limit in ms from the start. */
  readonly deadlineMs?: number;
  /** `default`: no one is asked, and the model's own default is used; `deny`: the model cannot ask at all. */
  readonly questions?: "ask" | "default" | "deny";
  /** A JSON Schema: the last answer is JSON that fits it, in `output` of `status` and of the event `session:ended`. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** 1 to 5: if there are too few workers, 1 goes first. Default 3. */
  readonly priority?: number;
  /** The tenant: if there are too few workers, tenants take turns. */
  readonly tenant?: string;
  /** Images and PDFs that belong to the task: paths, or their bytes. */
  readonly images?: readonly AttachmentSource[];
  /** The same, and text files, whose text becomes part of the task's message, with the file's name. */
  readonly files?: readonly AttachmentSource[];
}
