/** Events as watchers see them. */
import type { z } from "zod";
import type { eventData } from "./event-data.ts";

/** What each event carries. */
export type EventData = { [Type in keyof typeof eventData]: z.infer<(typeof eventData)[Type]> };

export type EventType = keyof EventData;

/** An event before it has its place in the order. */
export type NewEvent = {
  [Type in EventType]: {
    readonly type: Type;
    readonly step: number;
    readonly attempt?: number;
    readonly data: EventData[Type];
  };
}[EventType];

/** A stored event. `seq` grows; chunks of finished steps are deleted, which leaves gaps. */
export interface SessionEvent<Type extends EventType = EventType> {
  readonly seq: number;
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly attempt: number;
  readonly at: string;
  readonly type: Type;
  readonly data: EventData[Type];
}
