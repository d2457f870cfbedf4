/**
 * The payload converter inside the workflow: the guarded one, except that an argument from outside that cannot be decoded
 * becomes an `Undecodable` value. The SDK decodes signals, updates, queries, the start's arguments and the memo before any
 * code of ours runs, and an error there fails the workflow task, which the server then repeats forever: not even a
 * cancel gets through. Results of our own activities still throw.
 */
import type { Payload, PayloadConverter } from "@temporalio/common";
import { Undecodable } from "../activities/contract/undecodable.ts";
import { payloadConverter as guarded } from "./payload-guard.ts";

class WorkflowConverter implements PayloadConverter {
  toPayload<T>(value: T): Payload {
    return guarded.toPayload(value);
  }

  fromPayload<T>(payload: Payload, context?: { readonly type: string }): T {
    if (context?.type === "activity") return guarded.fromPayload(payload);
    try {
      return guarded.fromPayload(payload);
    } catch {
      // Not T: `workflows/undecodable-arguments.ts` takes these out before a handler sees them.
      return new Undecodable(encodingOf(payload)) as T;
    }
  }
}

function encodingOf({ metadata }: Payload): string {
  return String.fromCharCode(...(metadata?.["encoding"] ?? []).slice(0, 60));
}

/** The name is Temporal's. */
export const payloadConverter = new WorkflowConverter();
