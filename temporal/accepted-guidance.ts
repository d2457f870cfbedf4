/** People's messages to a run, read from its history in Temporal: for runs that ended without storing them. Pure. */
import { defaultPayloadConverter, type Payload } from "@temporalio/common";
import { optionalTsToMs } from "@temporalio/common/lib/time.js";
import type { History } from "@temporalio/common/lib/proto-utils.js";
import {
  isEmptyMessage,
  type Guidance,
  senderOf,
  createUnnamedIds,
  idOf,
  itemsOf,
  partsOf,
} from "../activities/contract/guidance.ts";

type Event = NonNullable<History["events"]>[number];

/**
 * All messages that a run received, in order of arrival and under the ids that the run itself gives them: those it was
 * started with, signals, and updates that it accepted.
 */
export function acceptedGuidance({ events }: History): Guidance[] {
  const list = events ?? [];
  const unnamed = createUnnamedIds(runKeyOf(list));
  const items = list.flatMap((event) => {
    const queuedAt = new Date(optionalTsToMs(event.eventTime) ?? 0).toISOString();
    return [
      ...startedWith(event),
      ...messagesIn(event).flatMap((message) => {
        const parts = partsOf(message);
        if (!parts || isEmptyMessage(parts)) return [];
        return itemsOf(idOf(message) ?? unnamed(parts), parts, queuedAt, senderOf(message));
      }),
    ];
  });
  // A message that its sender took back counts as seen.
  const seen = new Set<string>(list.flatMap(takenBackBy));
  return items.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** The same key as in the workflow: the chain of runs, and when this run's first task began. A reset keeps both. */
function runKeyOf(events: readonly Event[]): string {
  const chain = events[0]?.workflowExecutionStartedEventAttributes?.firstExecutionRunId ?? "";
  const first = events.find((event) => event.workflowTaskCompletedEventAttributes);
  const startedEventId = String(first?.workflowTaskCompletedEventAttributes?.startedEventId);
  const begun = events.find((event) => String(event.eventId) === startedEventId);
  return `${chain} ${optionalTsToMs(begun?.eventTime) ?? 0}`;
}

/** Ids of messages that the run's queue had until their sender withdrew them. */
function takenBackBy(event: Event): string[] {
  const input =
    event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input ??
    event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
  if (input?.name !== "withdrawMessage") return [];
  const { id } = (valueOf(input.args?.payloads?.[0]) ?? {}) as { readonly id?: unknown };
  return typeof id === "string" ? [id] : [];
}

function startedWith(event: Event): Guidance[] {
  const input = valueOf(event.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]);
  if (typeof input !== "object" || input === null) return [];
  const { guidance, carried } = input as {
    guidance?: unknown;
    carried?: { inbox?: { queue?: unknown } } | null;
  };
  return [guidance, carried?.inbox?.queue].flatMap((list) =>
    Array.isArray(list) ? (list as Guidance[]) : [],
  );
}

/** What an event carries that may be a message. A reset that applies an update again records it as admitted. */
function messagesIn(event: Event): unknown[] {
  const signal = event.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const isMessage = signal.signalName === "guidance" || signal.signalName === "interrupt";
    return isMessage ? [valueOf(signal.input?.payloads?.[0])] : [];
  }
  const input =
    event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input ??
    event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
  return input?.name === "sendGuidance" ? [valueOf(input.args?.payloads?.[0])] : [];
}

/** Undefined for a payload that the run could not read either. */
function valueOf(payload: Payload | null | undefined): unknown {
  if (!payload) return undefined;
  try {
    return defaultPayloadConverter.fromPayload(payload);
  } catch {
    return undefined;
  }
}
