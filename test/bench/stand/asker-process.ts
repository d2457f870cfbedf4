/** Asks a model for many answers at once, with the adapter of one checkout, in a process of its own. */
import type { createAiSdkModel } from "../../../activities/model/ai-sdk.ts";
import type { ModelRequest } from "../../../activities/model/model.ts";
import { serve } from "./channel.ts";
import { askedAs } from "../../support/run-config.ts";

const { createAiSdkModel: create } = (await import(
  new URL("activities/model/ai-sdk.ts", process.env["ASKER_ROOT"]).href
)) as { readonly createAiSdkModel: typeof createAiSdkModel };
const baseUrl = process.env["ASKER_MODEL"] ?? "";
const model = create({
  environment: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: baseUrl },
  mask: (text) => text,
});
await model.warm();

const MINUTE_MS = 60_000;
const tools = Array.from({ length: 16 }, (_, index) => ({
  name: index === 0 ? "bash" : `tool_${index}`,
  description: "Runs a command.",
  inputSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
}));

export interface Answers {
  /** Of this process, for each answer. */
  readonly cpuMs: number;
  readonly firstTokenMs: readonly number[];
  /** The most that was seen above what was in use before, in bytes: of the heap and outside it. */
  readonly addedBytes: number;
  readonly residentBytes: number;
}

const bytesInUse = () => process.memoryUsage().heapUsed + process.memoryUsage().external;

const verbs = {
  /** @param gatherMs how long a piece may wait for those that follow; 0 while someone watches */
  async answers(count: number, gatherMs: number): Promise<Answers> {
    globalThis.gc?.();
    const before = bytesInUse();
    let peak = before;
    const timer = setInterval(() => (peak = Math.max(peak, bytesInUse())), 100);
    const cpu = process.cpuUsage();
    const answers = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        model.ask(requestOf(index, gatherMs), () => undefined, new AbortController().signal),
      ),
    );
    const { user, system } = process.cpuUsage(cpu);
    clearInterval(timer);
    return {
      cpuMs: (user + system) / 1_000 / count,
      firstTokenMs: answers.map(({ firstTokenMs }) => firstTokenMs),
      addedBytes: peak - before,
      residentBytes: process.memoryUsage.rss(),
    };
  },
};
export type AskerVerbs = typeof verbs;

function requestOf(index: number, gatherMs: number): ModelRequest {
  return {
    target: {
      ...askedAs("openai/gpt-4o"),
      api: "responses",
      contextWindow: 200_000,
      maxOutput: 16_000,
      input: ["text"],
    },
    system: "You are a coding agent.",
    messages: [{ role: "user", content: [{ type: "text", text: "Make it so." }] }],
    tools,
    maxOutputTokens: 1_000,
    cacheKey: `answers-${index}`,
    deadlines: {
      connectMs: MINUTE_MS,
      firstTokenMs: MINUTE_MS,
      silenceMs: MINUTE_MS,
      answerMs: 5 * MINUTE_MS,
    },
    gatherMs: () => gatherMs,
  };
}

serve(verbs, async () => undefined);
