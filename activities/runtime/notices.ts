/** The port to an address of the operator's that is notified. */
import type { NotifyInput } from "../contract/questions.ts";

/** What is posted as JSON. Texts are left out unless the operator wants them. */
interface Notice {
  /** The same for each copy of a notice. */
  readonly id: string;
  readonly event: NotifyInput["event"];
  readonly session: string;
  readonly question: string | null;
  readonly kind: string | null;
  /** Of a session that has ended. */
  readonly status: string | null;
  /** What a person types. */
  readonly command: string;
  readonly text?: string;
  readonly options?: readonly string[] | null;
}

/** Sends a notice. @throws Error if the address does not take it */
export type SendNotice = (notice: Notice, signal: AbortSignal) => Promise<void>;
