/** All tools, by name. To add one: a new file, a line here, a row in the snapshot test. */
import { z } from "zod";
import type { ToolSpec } from "../contract/tools.ts";
import { applyPatch } from "./apply-patch.ts";
import { askUser } from "./ask-user.ts";
import { bash } from "./bash.ts";
import { bashOutput } from "./bash-output.ts";
import { delegate } from "./delegate.ts";
import { editFile } from "./edit-file.ts";
import { exitPlan } from "./exit-plan.ts";
import { globFiles } from "./glob-files.ts";
import { grepContent } from "./grep-content.ts";
import { killProcess } from "./kill-process.ts";
import { listDirectory } from "./list-directory.ts";
import { readFile } from "./read-file.ts";
import { readOutput } from "./read-output.ts";
import { replyReview } from "./reply-review.ts";
import { rerunChecks } from "./rerun-checks.ts";
import { restartService } from "./restart-service.ts";
import { searchHistory } from "./search-history.ts";
import { todo } from "./todo.ts";
import type { Tool } from "./tool.ts";
import { wait } from "./wait.ts";
import { webFetch } from "./web-fetch.ts";
import { viewImage } from "./view-image.ts";
import { writeFile } from "./write-file.ts";
import { writeStdin } from "./write-stdin.ts";

export type ToolRegistry = ReadonlyMap<string, Tool>;

export function createToolRegistry(tools: readonly Tool[]): ToolRegistry {
  return new Map(tools.map((tool) => [tool.name, tool]));
}

/** In the order in which the model sees them. */
export const toolRegistry: ToolRegistry = createToolRegistry([
  bash,
  writeStdin,
  bashOutput,
  killProcess,
  restartService,
  readFile,
  writeFile,
  editFile,
  applyPatch,
  listDirectory,
  globFiles,
  grepContent,
  readOutput,
  searchHistory,
  viewImage,
  webFetch,
  todo,
  askUser,
  wait,
  delegate,
  replyReview,
  rerunChecks,
  exitPlan,
]);

/** Names from the requirements that remain usable. Source: requirement 5. */
const ALIASES: Readonly<Record<string, string>> = { execute_command: "bash" };

/** The tool with that name or alias. */
export function findTool(registry: ToolRegistry, name: string): Tool | undefined {
  return registry.get(name) ?? registry.get(Object.hasOwn(ALIASES, name) ? (ALIASES[name] ?? "") : "");
}

/** The tools as the model sees them: each once, under its own name. */
export function toolSpecs(registry: ToolRegistry = toolRegistry): ToolSpec[] {
  return [...registry.values()].filter((tool) => tool.isHidden !== true).map(toolSpec);
}

export function toolSpec(tool: Tool): ToolSpec {
  const { name, description, server, isOwn } = tool;
  return {
    name,
    description,
    inputSchema: tool.inputSchema ?? inputSchemaOf(tool),
    ...(server === undefined && isOwn !== true ? {} : { isForeign: true }),
  };
}

function inputSchemaOf(tool: Tool): Record<string, unknown> {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(tool.input, {
    io: "input",
    override: ({ jsonSchema }) => {
      for (const check of CHECKED_HERE) delete jsonSchema[check];
    },
  });
  return schema;
}

/** Left out of what the model sees, since each costs tokens in every request: `invokeTool` checks them all the same. */
const CHECKED_HERE = [
  "additionalProperties",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "minItems",
  "maxItems",
] as const;
