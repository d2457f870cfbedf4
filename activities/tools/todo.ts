import { z } from "zod";
import { failure, typedTool, type ToolResult } from "./tool.ts";
import { oneLine } from "./paths.ts";

const item = z.strictObject({
  content: z.string().trim().min(1).max(500),
  status: z.enum(["pending", "in_progress", "completed"]),
});

const input = z.strictObject({
  items: z.array(item).max(100).describe("The whole list, in order."),
});

const BOX = { pending: "[ ]", in_progress: "[~]", completed: "[x]" } as const;

/** Stores nothing: the current list is the newest call in the transcript. */
export const todo = typedTool({
  name: "todo",
  description:
    "Keeps a checklist for you and for people who watch. Use it for work of three or more steps. One item is in_progress; mark " +
    "each completed as soon as it is done.",
  input,
  readOnly: true,
  about: ({ items }) => {
    const completed = items.filter(({ status }) => status === "completed").length;
    const now = items.find(({ status }) => status === "in_progress");
    return `${completed}/${items.length} done${now === undefined ? "" : `: ${now.content}`}`;
  },
  run: async (request): Promise<ToolResult> => {
    const active = request.items.filter(({ status }) => status === "in_progress").length;
    if (active > 1)
      return failure(`${active} items are in_progress, and only one may be. The list was not changed.`);
    if (request.items.length === 0) return { text: "(the list is empty)" };
    return {
      text: request.items.map(({ status, content }) => `${BOX[status]} ${oneLine(content, 500)}`).join("\n"),
    };
  },
});
