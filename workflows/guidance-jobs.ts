/**
 * Messages of persons on their way from Temporal to the queue, past the SDK's own way for signals: that makes eight
 * promises of each, and takes a stack trace for every one, so that reading 10,000 again took 11 s of CPU if a
 * workflow's task may take 10. Temporal loads this file by the name of its export, as an interceptor.
 */
import { defaultPayloadConverter, type Payload } from "@temporalio/common";
import type { WorkflowInterceptors } from "@temporalio/workflow";
import { Undecodable } from "../activities/contract/undecodable.ts";
import { guidanceSignal } from "./messages.ts";
import { thisRun } from "./this-run.ts";

/** So many before the run has begun are a flood; fewer go the SDK's way, in one order with all else that came. */
const FLOOD = 100;

interface Job {
  readonly signalWorkflow?: {
    readonly signalName?: string | null;
    readonly input?: readonly unknown[] | null;
  } | null;
}

/** Messages in their place among all that a task brings: jobs that are none go to `pass`, in lists. */
export function route<J extends Job>(
  jobs: readonly J[],
  taken: (message: unknown) => void,
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
      taken(message.value);
    }
  }
  passOthers();
}

/** Undefined for all that is not a message. One that cannot be decoded is a message whose taker refuses it. */
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
          // The run begins in this very task: then its queue is there.
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
