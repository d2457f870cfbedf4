/** Which of the worker's tools a session has. Pure. */
import type { Session } from "../store/sessions.ts";
import type { ToolRegistry } from "./index.ts";

/** The tools of a session, in the order in which its model sees them; the same registry for the same tools. */
export function sessionTools(registry: ToolRegistry, _session: Pick<Session, "config">): ToolRegistry {
  return registry;
}
