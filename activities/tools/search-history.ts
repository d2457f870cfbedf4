import { z } from "zod";
import { oneLine } from "./paths.ts";
import { defineTool, type ToolContext, type ToolResult } from "./tool.ts";

const input = z.strictObject({
  query: z
    .string()
    .trim()
    .min(1)
    .describe("Words to look for in this session's earlier messages and tool results."),
});
type SearchHistoryInput = z.infer<typeof input>;

const MAX_ROWS = 20;
const EXCERPT_CHARS = 500;

export const searchHistory = defineTool<SearchHistoryInput>({
  name: "search_history",
  description:
    "Finds earlier messages of this session by words, also those that a summary has replaced. Newest first, at most 20, " +
    "with an excerpt each. Use it when the summary lacks a detail.",
  input,
  readOnly: true,
  about: (given) => oneLine(given.query, 60),
  timeoutMs: (_given, limits) => limits.timeoutMs,
  run,
});

async function run(given: SearchHistoryInput, context: ToolContext): Promise<ToolResult> {
  const rows = await context.memory.search(given.query, MAX_ROWS);
  if (rows.length === 0) {
    return {
      text: `Nothing in this session holds "${oneLine(given.query, 200)}". Try fewer or other words.`,
    };
  }
  return {
    text: rows
      .map(
        (row) =>
          `[message ${row.sequence}, step ${row.step}, ${row.role}] ${oneLine(row.excerpt, EXCERPT_CHARS)}`,
      )
      .join("\n"),
  };
}
