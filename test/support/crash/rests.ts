/** Sessions that rest: whether one does, and what brings it on. */
import { eq, and, isNull } from "drizzle-orm";
import { events, waits } from "../../../activities/store/schema/index.ts";
import type { SessionServices } from "../checker/collect.ts";
import { runsIn, touch } from "../in-container.ts";
import { GO_FILE, type CrashRest } from "./scripts.ts";

/** Between two looks at a session, in ms. */
const LOOK_MS = 150;

export interface Rest {
  isReached(): Promise<boolean>;
  /** Does what ends the rest; nothing for one that time ends. */
  bringOn(): Promise<void>;
  /** Brings it on as soon as it is reached, until `isOver`. */
  bringOnWhenReached(isOver: () => boolean): Promise<void>;
}

export function restOf(services: SessionServices, id: string, rest: CrashRest): Rest {
  const container = services.docker.getContainer(`longhaul-${id}`);
  const handle = services.client.workflow.getHandle(id);
  const { db } = services.database.store;
  const isReached = async (): Promise<boolean> => {
    switch (rest.until) {
      case "command":
        return runsIn(container, `until [ -e ${GO_FILE}`);
      case "wait":
        return (await db.$count(waits, and(eq(waits.sessionId, id), isNull(waits.endedAt)))) > 0;
      case "parked":
        return (
          (await db.$count(events, and(eq(events.sessionId, id), eq(events.type, "sandbox:parked")))) > 0
        );
    }
  };
  const bringOn = async (): Promise<void> => {
    if (rest.by === "go") await touch(container, GO_FILE);
    if (rest.by === "answer") await handle.signal("answer", "MIT");
  };
  return {
    isReached,
    bringOn,
    async bringOnWhenReached(isOver) {
      if (rest.by === undefined) return;
      while (!isOver()) {
        if (await isReached().catch(() => false)) return bringOn();
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    },
  };
}
