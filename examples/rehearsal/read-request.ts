/**
 * Parses the body of POST /v1/responses for the rehearsal. Only our own client sends it: fields that it does not send
 * are refused. Pure.
 */
import { z } from "zod";
import type { ParsedRequest, WireItem } from "./wire.ts";

const parts = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .transform((content) =>
    (typeof content === "string" ? [{ text: content }] : content).map(({ text }) =>
      text === undefined ? ({ type: "file" } as const) : ({ type: "text", text } as const),
    ),
  );

const item = z.union([
  z.object({ role: z.enum(["system", "developer", "user", "assistant"]), content: parts }),
  z.object({
    type: z.literal("function_call"),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.object({ type: z.literal("function_call_output"), call_id: z.string(), output: parts }),
  z.object({ type: z.literal("reasoning"), summary: z.array(z.object({ text: z.string() })) }),
]);

const body = z.object({
  model: z.string(),
  instructions: z.string().optional(),
  input: z.array(item),
  tools: z.array(z.unknown()).default([]),
  tool_choice: z.unknown(),
  prompt_cache_key: z.string().optional(),
});

export interface ReadRequest {
  readonly request: ParsedRequest;
  readonly model: string;
  /** All texts that count as usage, in the order in which a cache compares them. */
  readonly texts: readonly string[];
}

/** @throws ZodError, SyntaxError for another body */
export function readRequest(text: string): ReadRequest {
  const {
    model,
    instructions = "",
    input,
    tools,
    tool_choice: choice,
    prompt_cache_key: cacheKey,
  } = body.parse(JSON.parse(text));
  const system = [instructions];
  const items: WireItem[] = [];
  const texts = [JSON.stringify(tools), instructions];
  for (const entry of input) {
    if ("role" in entry) {
      const { role, content } = entry;
      texts.push(textOf(content));
      if (role === "user" || role === "assistant") items.push({ type: "message", role, parts: content });
      else system.push(textOf(content));
    } else if (entry.type === "function_call") {
      texts.push(`${entry.name}\n${entry.arguments}`);
      items.push({ type: "call", callId: entry.call_id });
    } else if (entry.type === "function_call_output") {
      texts.push(textOf(entry.output));
      items.push({ type: "result", callId: entry.call_id, parts: entry.output });
    } else texts.push(...entry.summary.map((part) => part.text));
  }
  return {
    request: { system: system.join("\n"), items, tools: choice === "none" ? [] : tools, cacheKey },
    model,
    texts,
  };
}

const textOf = (content: z.infer<typeof parts>) =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
