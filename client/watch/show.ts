/** The parts of a watch, and its renderers: for people or as JSON lines. */
import type { SessionEvent } from "../../activities/store/event.ts";
import type { Services } from "../connect/connection.ts";
import type { Output } from "../console/output.ts";
import type { FollowEnd } from "./follow.ts";

export interface Watch {
  /** Called first: from then on Ctrl-C detaches. */
  readonly begin?: () => Promise<unknown>;
  readonly services: Services;
  readonly sessionId: string;
  readonly afterSeq: number;
  readonly json: boolean;
  /** Whether the watch ends with exit code 7 if a question is open. */
  readonly exitOnQuestion?: boolean;
  readonly output: Output;
  /** Whether delegates are shown too. */
  readonly children?: boolean;
  /**
   * Lines to print after the outcome; default: how to get the files, and how to continue.
   * @param goOn the command that resumes it, if that can help
   */
  readonly closing?: (end: FollowEnd, goOn: string | undefined) => Promise<readonly string[]>;
}

export interface Show {
  event(event: SessionEvent, live: boolean): void;
  tick(): void;
  lastOutput(lines: ReadonlyMap<string, string>): void;
  note(text: string): void;
  trouble(message: string): void;
  end(end: FollowEnd): void;
  /** Ends the output, or hands it over. */
  close(): void;
}
