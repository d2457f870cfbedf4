/** Recorded histories as Temporal leaves them after a reset: cut at a workflow task, and those in which all that followed comes again. */
import { randomUUID } from "node:crypto";
import type { RecordedHistory } from "./history-fixture.ts";

type Event = RecordedHistory["history"]["events"][number];

interface ResetHistory {
  readonly name: string;
  readonly shape: string;
  /** Ends with the task in which the new run begins. */
  readonly cut: History;
  /** The new run gets the same answers as the old one. */
  readonly again: History;
}

type History = RecordedHistory["history"];

/** The reset, and the task that follows it: events that the history has in addition. */
const ADDED = 3;

/** Resets to each event that Temporal allows: the end of a workflow task, or its start, which keeps the same events. */
export function resetsOf({ shape, history: { events } }: RecordedHistory): ResetHistory[] {
  return events.flatMap((event, index) => {
    const { scheduledEventId } = attributesOf(event, "workflowTaskStarted");
    if (scheduledEventId === undefined) return [];
    const cut = reset(events.slice(0, index + 1), Number(scheduledEventId));
    const rest = events.slice(index + 1).map((later) => shifted(later, Number(scheduledEventId), index + 1));
    return [
      {
        name: `${shape}, event ${index + 1}`,
        shape,
        cut: { events: cut },
        again: { events: [...cut, ...rest] },
      },
    ];
  });
}

const attributesOf = (event: Event | undefined, kind: string) =>
  (event?.[`${kind}EventAttributes`] ?? {}) as Readonly<Record<string, unknown>>;

/** Temporal fails the task that is reset to, and schedules another. */
function reset(events: readonly Event[], scheduledEventId: number): Event[] {
  const [first, ...others] = events;
  const scheduled = events[scheduledEventId - 1] ?? {};
  const started = events.at(-1) ?? {};
  const last = events.length;
  const startAttributes = attributesOf(first, "workflowExecutionStarted");
  // Temporal keeps the first run's id there, and replay takes it for the run's own, which the answers name.
  const newRunId = startAttributes["originalExecutionRunId"];
  const { eventTime } = started;
  const failed = {
    eventId: String(last + 1),
    eventTime,
    eventType: "EVENT_TYPE_WORKFLOW_TASK_FAILED",
    workflowTaskFailedEventAttributes: {
      scheduledEventId: String(scheduledEventId),
      startedEventId: String(last),
      cause: "WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW",
      failure: { message: "a test goes back", resetWorkflowFailureInfo: {} },
      baseRunId: randomUUID(),
      newRunId,
    },
  };
  return [
    {
      ...first,
      workflowExecutionStartedEventAttributes: { ...startAttributes, originalExecutionRunId: newRunId },
    },
    ...others,
    failed,
    { ...scheduled, eventTime, eventId: String(last + 2) },
    shifted({ ...started, eventId: String(last) }, scheduledEventId, last),
  ];
}

/** The event with its own number, and those that it names, moved by what the reset added; the task itself is the new one. */
function shifted(event: Event, task: number, started: number): Event {
  const moved = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const entries = Object.entries(value).map(([key, field]) => {
      if (!/eventId$/i.test(key)) return [key, moved(field)] as const;
      const id = Number(field);
      if (id === task) return [key, String(started + 2)] as const;
      return [key, id >= started ? String(id + ADDED) : field] as const;
    });
    return Object.fromEntries(entries) as unknown;
  };
  return moved(event) as Event;
}
