/** Plays the rehearsal to its end without an engine: the real server, the real model adapter, the real tools. */
import type { Message, ToolCallPart } from "../../activities/contract/message.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { Model } from "../../activities/model/model.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { toolSpecs } from "../../activities/tools/index.ts";
import { modelRequest, user } from "./model-request.ts";
import { callTool } from "./tool-context.ts";

export interface PlayedStep {
  readonly text: string;
  readonly calls: readonly PlayedCall[];
  readonly inputTokens: number;
}

interface PlayedCall {
  readonly id: string;
  readonly name: string;
  readonly outcome: string;
  readonly text: string;
}

/** How many of the newest messages are sent, in addition to the task: the window is small on purpose. */
const TAIL_MESSAGES = 6;
const MAX_STEPS = 150;

/** @returns the steps in order; the last one made no calls. */
export async function playRehearsal(url: string, sandbox: Sandbox, task: string): Promise<PlayedStep[]> {
  const model = rehearsalModel(url);
  const steps: PlayedStep[] = [];
  const messages: Message[] = [];
  while (steps.length < MAX_STEPS) {
    const answer = await askRehearsal(model, [user(task), ...tail(messages)]);
    const calls = answer.content.filter((part): part is ToolCallPart => part.type === "tool-call");
    const played: PlayedCall[] = [];
    messages.push({ role: "assistant", content: answer.content });
    for (const { toolCallId, toolName, input } of calls) {
      const { outcome, text } = await callTool(sandbox, toolName, input);
      played.push({ id: toolCallId, name: toolName, outcome, text });
      messages.push({
        role: "tool",
        content: [{ type: "tool-result", toolCallId, toolName, outcome, text }],
      });
    }
    const text = answer.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
    steps.push({ text, calls: played, inputTokens: answer.usage?.input ?? 0 });
    if (calls.length === 0) return steps;
  }
  throw new Error(`The rehearsal does not end within ${MAX_STEPS} steps.`);
}

function rehearsalModel(url: string): Model {
  return createAiSdkModel({ environment: { LONGHAUL_REHEARSAL_URL: url }, mask: (text) => text });
}

async function askRehearsal(model: Model, messages: readonly Message[], more: object = {}) {
  const request = modelRequest({
    model: "rehearsal/flashcards",
    messages,
    tools: toolSpecs(),
    maxOutputTokens: 2_000,
    ...more,
  });
  return await model.ask(request, () => {}, new AbortController().signal);
}

// A batch of results must not lose its calls.
function tail(messages: readonly Message[]): readonly Message[] {
  let from = Math.max(0, messages.length - TAIL_MESSAGES);
  while (from > 0 && messages[from]?.role === "tool") from--;
  return messages.slice(from);
}
