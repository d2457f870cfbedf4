/** Adapts a chat request to its server where the SDK has no setting for it. Pure. */
import type { ModelTarget } from "../../config/model-target.ts";
import { cacheMark, markedTurns, type WireRules } from "../request/wire-rules.ts";

type Body = Record<string, unknown>;
interface ChatMessage extends Body {
  readonly role: string;
  readonly content?: unknown;
}

export function toChatBody(body: Body, target: ModelTarget, rules: WireRules): Body {
  const { max_tokens: limit, messages, temperature, ...rest } = body;
  // OpenAI's models that reason refuse a temperature.
  const isCool = rules.maxTokensField === "max_completion_tokens";
  return {
    ...rest,
    ...(limit === undefined ? {} : { [rules.maxTokensField]: limit }),
    ...(temperature === undefined || isCool ? {} : { temperature }),
    messages: messagesOf(messages as readonly ChatMessage[], target, rules),
  };
}

function messagesOf(
  messages: readonly ChatMessage[],
  target: ModelTarget,
  { systemRole, cacheMarks }: WireRules,
): ChatMessage[] {
  const turns = markedTurns(messages);
  return messages.map((message, index) => {
    const isSystem = message.role === "system";
    const named = isSystem ? { ...message, role: systemRole } : message;
    const shown = target.imageDetail === undefined ? named : withDetail(named, target.imageDetail);
    return cacheMarks && (isSystem || turns.has(index)) ? marked(shown, target) : shown;
  });
}

function withDetail(message: ChatMessage, detail: string): ChatMessage {
  if (!Array.isArray(message.content)) return message;
  const content = (message.content as Body[]).map((part) =>
    part["type"] === "image_url" ? { ...part, image_url: { ...(part["image_url"] as Body), detail } } : part,
  );
  return { ...message, content };
}

/** The last of a message's parts gets the mark. Source: OpenRouter's guide on prompt caching. */
function marked(message: ChatMessage, target: ModelTarget): ChatMessage {
  const { content } = message;
  const parts =
    typeof content === "string" ? [{ type: "text", text: content }] : (content as Body[] | undefined);
  const last = parts?.at(-1);
  if (parts === undefined || last === undefined) return message;
  return { ...message, content: [...parts.slice(0, -1), { ...last, cache_control: cacheMark(target) }] };
}
