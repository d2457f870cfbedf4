/** A session's events, as tests read and await them. */
import type { EventType, SessionEvent } from "../../activities/store/event.ts";
import type { Store } from "../../activities/store/db.ts";
import { readEvents } from "../../activities/store/events.ts";
import { eventually } from "./eventually.ts";

export interface SessionEvents {
  events(): Promise<SessionEvent[]>;
  /** What the events of one type say, in order. */
  dataOf<Type extends EventType>(type: Type): Promise<SessionEvent<Type>["data"][]>;
  /** Waits for an event of that kind that `fits`. */
  until<Type extends EventType>(
    type: Type,
    fits?: (event: SessionEvent<Type>) => boolean,
  ): Promise<SessionEvent<Type>>;
}

export function sessionEvents({ db }: Pick<Store, "db">, id: string): SessionEvents {
  const events = () => readEvents(db, id, 0, 100_000);
  return {
    events,
    dataOf: async (type) =>
      (await events()).filter((event) => event.type === type).map(({ data }) => data as never),
    until: (type, fits = () => true) =>
      eventually(
        `event ${type}`,
        async () => {
          const list = await events();
          return list.find((event) => event.type === type && fits(event as never)) as never;
        },
        120_000,
      ),
  };
}
