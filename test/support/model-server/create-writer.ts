/** Chooses the writer of an answer by the request's wire and options. Pure. */
import type { AnswerWriter } from "./answer-writer.ts";
import { createChatWriter } from "./chat-writer.ts";
import { OPENAI_CHAT } from "./dialects/chat-style.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { isObject } from "./fields.ts";
import { createGeminiWriter } from "./gemini/gemini-writer.ts";
import { isThinking } from "./messages/check-messages.ts";
import { createMessagesWriter } from "./messages/messages-writer.ts";
import { createResponsesWriter } from "./responses-writer.ts";
import type { ParsedRequest, ServedModel, WireUsage } from "./wire.ts";

interface Writing {
  /** Number of the request at this server. */
  readonly number: number;
  readonly dialect: Dialect;
  readonly model: ServedModel;
  readonly usage: WireUsage | undefined;
}

export function createWriter(
  { raw, model: name, api }: ParsedRequest,
  { number, dialect, model, usage }: Writing,
): AnswerWriter {
  const base = { model: name, number };
  switch (api) {
    case "responses": {
      const include = Array.isArray(raw["include"]) ? raw["include"] : [];
      const { reasoning } = raw;
      return createResponsesWriter({
        ...base,
        encrypted: include.includes("reasoning.encrypted_content"),
        summary: isObject(reasoning) && typeof reasoning["summary"] === "string",
      });
    }
    case "chat": {
      const options = raw["stream_options"];
      return createChatWriter({
        ...base,
        includeUsage: isObject(options) && options["include_usage"] === true,
        style: { ...OPENAI_CHAT, ...dialect.chat },
      });
    }
    case "messages": {
      const { thinking } = raw;
      return createMessagesWriter({
        ...base,
        usage,
        thinking: isThinking(raw),
        omitted: isObject(thinking) && thinking["display"] === "omitted",
        marked: JSON.stringify(raw).includes('"cache_control"'),
      });
    }
    case "gemini": {
      const config = raw["generationConfig"];
      const thinking = isObject(config) ? config["thinkingConfig"] : undefined;
      return createGeminiWriter({
        ...base,
        thoughts: isObject(thinking) && thinking["includeThoughts"] === true,
        signatures: model.signatures === true,
      });
    }
  }
}
