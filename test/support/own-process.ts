/** A server of a test's own as one process, which the test stops and restarts. */
import { cutChars } from "../../activities/text/cut.ts";
import {
  endProcess,
  isAlive,
  launch,
  type Launch,
  type ProcessMark,
  tail,
} from "../../client/setup/processes.ts";
import { succeeds } from "../../temporal/patience.ts";
import { eventually } from "./eventually.ts";

export interface OwnProcess {
  /** 0 while it is stopped. */
  readonly pid: () => number;
  /** Resolves once it answers. @throws Error with the end of its log */
  start(question?: Question): Promise<void>;
  /** Waits until it answers. @throws Error with the end of its log */
  until(question?: Question): Promise<void>;
  stop(how?: Parameters<typeof endProcess>[1]): Promise<void>;
}

/** Resolves if it is answered. */
type Question = () => Promise<unknown>;

const LOG_CHARS = 4_000;

/** @param usual what a running server answers, within `startMs` */
export function ownProcess(what: string, program: Launch, usual: Question, startMs: number): OwnProcess {
  let mark: ProcessMark | undefined;
  const until = async (question = usual) => {
    const answers = async () => {
      if (mark && !(await isAlive(mark))) throw new Error(`${what} ended`);
      return succeeds(question());
    };
    try {
      await eventually(`${what} answers`, answers, startMs);
    } catch (error) {
      throw new Error(`${String(error)}\n${cutChars(tail(program.log), LOG_CHARS)}`, { cause: error });
    }
  };
  return {
    until,
    pid: () => mark?.pid ?? 0,
    async start(question) {
      mark = await launch(program);
      await until(question);
    },
    async stop(how) {
      if (mark) await endProcess(mark, how);
      mark = undefined;
    },
  };
}
