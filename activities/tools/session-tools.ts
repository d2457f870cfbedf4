/** Which of the worker's tools a session has. Pure. */
import { type RunConfig, questionSettings } from "../config/agent-config.ts";
import type { Session } from "../store/sessions.ts";
import { askUser } from "./ask-user.ts";
import { DELEGATE } from "./delegate.ts";
import { toolIn } from "./elsewhere.ts";
import { exitPlan } from "./exit-plan.ts";
import { createToolRegistry, type ToolRegistry } from "./index.ts";
import { withMcpTools } from "./mcp-tools.ts";
import type { Tool } from "./tool.ts";

/** What a planning session has besides the read-only tools: the sandbox prevents its commands from writing. */
const PLANNING = new Set(["bash", "bash_output", "kill_process"]);

/** By registry, then by the settings that matter: the schemas are measured once for each combination. */
const chosen = new WeakMap<ToolRegistry, Map<string, ToolRegistry>>();

const NONE = createToolRegistry([]);

/** The tools of a session, in the order in which its model sees them; the same registry for the same tools. */
export function sessionTools(
  worker: ToolRegistry,
  session: Pick<Session, "config" | "catalogues">,
): ToolRegistry {
  if (session.config.noTools === true) return NONE;
  const registry = withMcpTools(worker, session);
  const facts = factsOf(session.config);
  const known = chosen.get(registry) ?? new Map<string, ToolRegistry>();
  chosen.set(registry, known);
  const key = JSON.stringify(facts);
  const tools = known.get(key) ?? createToolRegistry(offered(registry, facts));
  known.set(key, tools);
  return tools;
}

function factsOf({ questions, plan, delegate, sandbox }: RunConfig) {
  const { mode } = questionSettings(questions);
  const folder = sandbox.container?.folder;
  return { mode, isPlanning: plan === true, delegates: delegate?.enabled === true, folder };
}

function offered(registry: ToolRegistry, facts: ReturnType<typeof factsOf>): Tool[] {
  const { folder } = facts;
  const tools = [...registry.values()].filter((tool) => isOffered(tool, facts));
  return folder === undefined ? tools : tools.map((tool) => toolIn(tool, folder));
}

function isOffered(tool: Tool, { mode, isPlanning, delegates }: ReturnType<typeof factsOf>): boolean {
  if (tool.name === askUser.name) return mode !== "deny";
  // In an unattended session, which cannot approve a plan, the plan is the result.
  if (tool.name === exitPlan.name) return isPlanning && mode === "ask";
  if (tool.name === DELEGATE && !delegates) return false;
  return !isPlanning || (tool.onlyReads ?? tool.readOnly) || PLANNING.has(tool.name);
}
