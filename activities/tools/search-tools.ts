/** Finds tools that are not in the request, and makes them callable. */
import { z } from "zod";
import { cutChars } from "../text/cut.ts";
import { failure, typedTool, type Tool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine } from "./paths.ts";

const input = z.strictObject({
  query: z.string().min(1).describe("A few words on what the tool should do, or its name."),
});

/** Most tools that one search makes callable. Chosen: some 4,000 tokens of descriptions. */
const MAX_FOUND = 10;
const DESCRIPTION_CHARS = 300;

export const SEARCH_TOOLS = "search_tools";

/** @param hidden the tools that a search can find, in fixed order */
export function searchTools(hidden: readonly Tool[]): Tool {
  const servers = [...new Set(hidden.map(({ server }) => server))].join(", ");
  return typedTool({
    name: SEARCH_TOOLS,
    description: `Searches the ${hidden.length} tools of the servers ${servers} that are not listed here. You can call the tools that it finds, at most ${MAX_FOUND}, from your next step on.`,
    input,
    // A repeated search finds the same tools and adds nothing.
    readOnly: true,
    about: ({ query }) => query,
    run: ({ query }, context) => search(hidden, query, context),
  });
}

async function search(hidden: readonly Tool[], query: string, context: ToolContext): Promise<ToolResult> {
  const tools = findTools(hidden, query);
  if (tools.length === 0)
    return failure(
      `No tool matches "${oneLine(query, 80)}". Use other words, or fewer. The tools are: ${oneLine(hidden.map(({ name }) => name).join(", "), 4_000)}`,
    );
  await context.mcp?.keepFound(tools.map(({ server = "", name }) => ({ server, name })));
  const lines = tools.map(
    ({ name, description }) => `- ${name}: ${cutChars(oneLine(description, 1_000), DESCRIPTION_CHARS)}`,
  );
  return { text: `You can call these tools from your next step on:\n${lines.join("\n")}` };
}

/** The tools that best match a query: by how many of its words are in the name, then in the description. */
export function findTools(tools: readonly Tool[], query: string): Tool[] {
  const terms = query
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  const scored = tools.map((tool) => {
    const name = tool.name.toLowerCase();
    const description = tool.description.toLowerCase();
    const score = terms.reduce(
      (sum, word) => sum + (name.includes(word) ? 3 : 0) + (description.includes(word) ? 1 : 0),
      name === query.toLowerCase() ? 100 : 0,
    );
    return { tool, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, MAX_FOUND)
    .map(({ tool }) => tool);
}
