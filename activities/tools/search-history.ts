import { z } from "zod";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine } from "./paths.ts";
import { type HistorySearch } from "../contract/tools.ts";

const input = z.strictObject({
  query: z.string().trim().min(1).describe("Words that must all occur; quotes keep a phrase together."),
});

const MAX_ROWS = 20;
const EXCERPT_CHARS = 500;
/** Further words would not narrow a search. */
const MAX_WORDS = 12;

export const searchHistory = typedTool({
  name: "search_history",
  description:
    "Finds earlier messages of this session, also those that a summary replaced, and the whole outputs of cut results: excerpts, " +
    "newest first, at most 20.",
  input,
  readOnly: true,
  about: (request) => request.query,
  run,
});

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const terms = splitWords(request.query);
  if (terms.length === 0) return failure("The query has no word. Give at least one.");
  const { hits, skippedOutputs } = await context.memory.search(terms, MAX_ROWS);
  const note =
    skippedOutputs === 0
      ? []
      : [`(the ${skippedOutputs} oldest whole outputs were not searched: together they are too large)`];
  if (hits.length === 0) {
    const all = terms.length === 1 ? "" : " all of";
    return {
      text: [
        `Nothing in this session contains${all} ${oneLine(terms.map((word) => JSON.stringify(word)).join(", "), 200)}. Try fewer or other words.`,
        ...note,
      ].join("\n"),
    };
  }
  return { text: [...hits.map(line), ...note].join("\n") };
}

function line({ sequence, step, role, excerpt, output }: HistorySearch["hits"][number]): string {
  const origin =
    output === undefined
      ? `message ${sequence}, step ${step}, ${role}`
      : `whole output of step ${step}: read_output handle="${output.handle}" offset=${output.offset}`;
  return `[${origin}] ${oneLine(excerpt, EXCERPT_CHARS)}`;
}

/** The words of a query, each quoted phrase as one; unclosed quotes count as blanks. */
export function splitWords(query: string): string[] {
  const terms = [...query.matchAll(/"([^"]+)"|[^\s"]+/g)].map(([match, phrase]) => (phrase ?? match).trim());
  return [...new Set(terms)].filter((word) => word !== "").slice(0, MAX_WORDS);
}
