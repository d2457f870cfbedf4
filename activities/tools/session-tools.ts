/** Which of the worker's tools a session has, adapted to a workspace in a folder other than /workspace. */
import type { RunConfig } from "../config/agent-config.ts";
import type { Session } from "../store/sessions.ts";
import { askUser } from "./ask-user.ts";
import { DELEGATE } from "./delegate.ts";
import { exitPlan } from "./exit-plan.ts";
import { createToolRegistry, type ToolRegistry, toolSpec } from "./index.ts";
import { replyReview } from "./reply-review.ts";
import { rerunChecks } from "./rerun-checks.ts";
import { restartService } from "./restart-service.ts";
import { sandboxServices } from "../config/service-settings.ts";
import { wait } from "./wait.ts";
import { withMcpTools } from "./mcp-tools.ts";
import type { Tool, ToolResult } from "./tool.ts";
import path from "node:path/posix";
import { isReadOnly } from "../config/review-settings.ts";
import { inFolder, WORKSPACE } from "../config/sandbox-settings.ts";

/** What a session with a read-only workspace has besides the read-only tools: the sandbox prevents its commands from writing. */
const READING = new Set(["bash", "write_stdin", "bash_output", "kill_process"]);

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
  const byKey = chosen.get(registry) ?? new Map<string, ToolRegistry>();
  chosen.set(registry, byKey);
  const key = JSON.stringify(facts);
  const tools = byKey.get(key) ?? createToolRegistry(offered(registry, facts));
  byKey.set(key, tools);
  return tools;
}

function factsOf(config: RunConfig) {
  const { questions, plan, delegate, sandbox, waits, repository } = config;
  const { mode } = questions;
  const folder = sandbox.container?.folder;
  const hasServices = Object.keys(sandboxServices(sandbox)).length > 0;
  return {
    mode,
    isPlanning: plan === true,
    onlyReads: isReadOnly(config),
    delegates: delegate?.enabled === true,
    waits: waits !== false,
    folder,
    hasServices,
    follows: repository?.follow?.on === true,
  };
}

function offered(registry: ToolRegistry, facts: ReturnType<typeof factsOf>): Tool[] {
  const { folder } = facts;
  const tools = [...registry.values()].filter((tool) => isOffered(tool, facts));
  return folder === undefined ? tools : tools.map((tool) => toolIn(tool, folder));
}

function isOffered(
  tool: Tool,
  { mode, isPlanning, onlyReads, delegates, waits, hasServices, follows }: ReturnType<typeof factsOf>,
): boolean {
  if (tool.name === askUser.name) return mode !== "deny";
  // In an unattended session, which cannot approve a plan, the plan is the result.
  if (tool.name === exitPlan.name) return isPlanning && mode === "ask";
  if (tool.name === DELEGATE && !delegates) return false;
  if (tool.name === wait.name && !waits) return false;
  if (tool.name === restartService.name && !hasServices) return false;
  if ((tool.name === replyReview.name || tool.name === rerunChecks.name) && !follows) return false;
  return !onlyReads || (tool.onlyReads ?? tool.readOnly) || READING.has(tool.name);
}

/** The same tool with `folder` in its texts, accepting paths inside it. */
export function toolIn(tool: Tool, folder: string): Tool {
  // Descriptions by an MCP server, or of the operator's own tools, do not refer to our workspace.
  if (tool.server !== undefined || tool.isOwn === true) return tool;
  const { description, inputSchema } = toolSpec(tool);
  return {
    ...tool,
    description: inFolder(description, folder),
    inputSchema: JSON.parse(inFolder(JSON.stringify(inputSchema), folder)) as Record<string, unknown>,
    run: async (input, context) =>
      withFolder(await tool.run(fromFolder(tool.name, input, folder), context), folder),
  };
}

/** Only errors are our own texts, so output stays unchanged. */
const withFolder = (result: ToolResult, folder: string): ToolResult =>
  result.isError === true && result.exitCode === undefined
    ? { ...result, text: inFolder(result.text, folder) }
    : result;

const PATHS = ["path", "cwd"];
/** The tool whose pattern consists of paths. */
const GLOB = "glob_files";
const PATCH_LINE = /^(\*\*\* (?:Add File|Update File|Delete File|Move to): )(\/.*)$/gm;

function fromFolder(tool: string, input: unknown, folder: string): unknown {
  if (typeof input !== "object" || input === null) return input;
  return Object.fromEntries(
    Object.entries(input).map(([name, value]: [string, unknown]) => {
      if (typeof value !== "string") return [name, value];
      if (PATHS.includes(name) || (tool === GLOB && name === "pattern"))
        return [name, inWorkspace(value, folder)];
      if (name !== "patch") return [name, value];
      return [
        name,
        value.replace(
          PATCH_LINE,
          (_, mark: string, inputPath: string) => mark + inWorkspace(inputPath, folder),
        ),
      ];
    }),
  );
}

/** A path as the tools expect it; a place elsewhere is refused under the name given. */
function inWorkspace(inputPath: string, folder: string): string {
  if (!inputPath.startsWith("/")) return inputPath;
  const inside = path.relative(folder, inputPath);
  if (inside === "") return WORKSPACE;
  return inside === ".." || inside.startsWith("../") ? inputPath : `${WORKSPACE}/${inside}`;
}
