/** I11: every event matches its schema and has no other field. */
import { eventData } from "../../../activities/store/event-data.ts";
import type { EventType } from "../../../activities/store/event.ts";
import type { Evidence } from "./evidence.ts";
import type { Violation } from "./violation.ts";

export function checkShapes({ events }: Pick<Evidence, "events">): Violation[] {
  return events.flatMap(({ seq, type, data }) => {
    const at = { claim: "I11", where: `event ${seq}` } as const;
    if (!Object.hasOwn(eventData, type)) return [{ ...at, expected: "a known type", found: type }];
    const { error } = eventData[type as EventType].safeParse(data);
    return error === undefined ? [] : [{ ...at, expected: `${type} by its schema`, found: error.message }];
  });
}
