/** Sessions that rest: whether one does, and what brings it on. */
import { eq, and, isNull } from "drizzle-orm";
import { besideSession } from "../../../activities/sandbox/sandbox-host.ts";
import { sandboxName } from "../../../activities/sandbox/docker/profile.ts";
import { events, sessions, waits } from "../../../activities/store/schema/index.ts";
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
  const containerOf = (of: string) => services.docker.getContainer(sandboxName(of));
  const { sessionId: beside } = besideSession(id);
  const container = containerOf(rest.until === "fresh command" ? beside : id);
  const handle = services.client.workflow.getHandle(id);
  const { db } = services.database.store;
  const isReached = async (): Promise<boolean> => {
    switch (rest.until) {
      case "command":
      case "fresh command":
        return runsIn(container, `until [ -e ${GO_FILE}`);
      case "wait":
        return (await db.$count(waits, and(eq(waits.sessionId, id), isNull(waits.endedAt)))) > 0;
      case "question":
        return (await db.$count(sessions, and(eq(sessions.id, id), eq(sessions.status, "waiting")))) > 0;
      case "parked":
        return (
          (await db.$count(events, and(eq(events.sessionId, id), eq(events.type, "sandbox:parked")))) > 0
        );
    }
  };
  const bringOn = async (): Promise<void> => {
    if (rest.by === "go") await touch(container, GO_FILE);
    if (rest.by === "answer") await handle.signal("answer", "MIT");
    if (rest.by === "money") await handle.signal("answer", { question: "s3budget", text: "$1000" });
    if (rest.by === "wake") await handle.executeUpdate("wake");
  };
  return {
    isReached,
    bringOn,
    async bringOnWhenReached(isOver) {
      if (rest.by === undefined) return;
      while (!isOver()) {
        const isReady = await isReached().catch(() => false);
        // A wait that is stored may not have begun yet for its workflow, which refuses to end it then.
        if (
          isReady &&
          (await bringOn().then(
            () => true,
            () => false,
          ))
        )
          return;
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    },
  };
}
