/**
 * Moves messages of people from Temporal to the queue without the SDK's handling of signals. The SDK makes eight promises per
 * signal and takes a stack trace for each, so that replaying 10,000 of them took 11 s of CPU, while a workflow task may
 * take 10 s. Temporal loads this file by the name of its export, as an interceptor.
 */
import { defaultPayloadConverter, type Payload } from "@temporalio/common";
import type { WorkflowInterceptors } from "@temporalio/workflow";
import { Undecodable } from "../activities/contract/undecodable.ts";
import { guidanceSignal } from "./messages.ts";
import { thisRun } from "./this-run.ts";

/** From this many messages before the run has begun they count as a flood; fewer go through the SDK, in order with all other jobs. */
const FLOOD = 100;

interface Job {
  readonly signalWorkflow?: {
    readonly signalName?: string | null;
    readonly input?: readonly unknown[] | null;
  } | null;
}

/** Takes the messages out of a task's jobs, in order; all other jobs go to `pass`, in lists. */
export function route<J extends Job>(
  jobs: readonly J[],
  receive: (message: unknown) => void,
  pass: (jobs: J[]) => void,
): void {
  let others: J[] = [];
  const passOthers = () => {
    if (others.length > 0) pass(others);
    others = [];
  };
  for (const job of jobs) {
    const message = messageOf(job);
    if (message === undefined) others.push(job);
    else {
      passOthers();
      receive(message.value);
    }
  }
  passOthers();
}

/** Undefined for a job that is not a message. A message that cannot be decoded is returned too: its handler refuses it. */
function messageOf({ signalWorkflow }: Job): { readonly value: unknown } | undefined {
  if (signalWorkflow?.signalName !== guidanceSignal.name) return undefined;
  const payload = signalWorkflow.input?.[0];
  try {
    return { value: payload ? defaultPayloadConverter.fromPayload(payload as Payload) : undefined };
  } catch {
    return { value: new Undecodable("") };
  }
}

/** The name is Temporal's. */
export function interceptors(): WorkflowInterceptors {
  return {
    internals: [
      {
        activate({ activation, batchIndex }, next) {
          const jobs = activation.jobs ?? [];
          const pass = (some: typeof jobs) => next({ activation: { ...activation, jobs: some }, batchIndex });
          const { takeMessage } = thisRun();
          if (takeMessage) return route(jobs, takeMessage, pass);
          if (jobs.filter((job) => messageOf(job)).length < FLOOD) return pass(jobs);
          // The run begins in this task, so its queue exists after that.
          const early: unknown[] = [];
          const others: typeof jobs = [];
          route(
            jobs,
            (message) => void early.push(message),
            (some) => void others.push(...some),
          );
          pass(others);
          for (const message of early) thisRun().takeMessage?.(message);
        },
      },
    ],
  };
}
