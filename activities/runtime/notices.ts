/** The port that posts notices to the operator's address. */
import type { NotifyInput } from "../contract/questions.ts";

/** What is posted as JSON. Texts are left out unless the operator wants them. */
interface Notice {
  /** Each copy of a notice has the same id. */
  readonly id: string;
  readonly event: NotifyInput["event"];
  readonly session: string;
  readonly question: string | null;
  readonly kind: string | null;
  /** Of a session that has ended. */
  readonly status: string | null;
  /** The command that a person types to answer. */
  readonly command: string;
  readonly text?: string;
  readonly options?: readonly string[] | null;
}

/** Sends a notice. @throws Error if the address does not take it */
export type SendNotice = (notice: Notice, signal: AbortSignal) => Promise<void>;
