/** Which of the worker's tools a session has. Pure. */
import type { Session } from "../store/sessions.ts";
import { DELEGATE } from "./delegate.ts";
import type { ToolRegistry } from "./index.ts";
import { withMcpTools } from "./mcp-tools.ts";

/** The tools of a session, in the order in which its model sees them; the same registry for the same tools. */
export function sessionTools(
  registry: ToolRegistry,
  session: Pick<Session, "config" | "catalogues">,
): ToolRegistry {
  const hidden = session.config.delegate?.enabled === true ? [] : [DELEGATE];
  return withMcpTools(without(registry, hidden), session);
}

const made = new WeakMap<ToolRegistry, Map<string, ToolRegistry>>();

/** What a registry's tools take is measured once, so that each list of them is made once. */
function without(registry: ToolRegistry, hidden: readonly string[]): ToolRegistry {
  const names = hidden.filter((name) => registry.has(name));
  if (names.length === 0) return registry;
  const lists = made.get(registry) ?? new Map<string, ToolRegistry>();
  made.set(registry, lists);
  const key = names.join(" ");
  const known = lists.get(key) ?? new Map([...registry].filter(([name]) => !names.includes(name)));
  lists.set(key, known);
  return known;
}
