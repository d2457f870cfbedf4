/**
 * A model that follows the newest message, one line a step: `run: COMMAND` calls bash, `say: TEXT` ends the task,
 * `ask: JSON` calls ask_user with it, `call: TOOL JSON` any tool, `slowly: TEXT` ends it word by word, `refuse` is a
 * provider's error, `bar` its answer to a wrong key. One server serves any number of sessions, and a test shows what its
 * session does. A message without such lines is answered with "Done.".
 */
import type { ParsedRequest, Reply } from "../model-server/wire.ts";
import { call, text } from "../scripted-model.ts";
import { goodSummary, isSummaryRequest } from "../scripted-summaries.ts";

const ORDER = /^(?:.*?\s)?(run|ask|call|say|slowly|refuse|bar)\b:? ?(.*)$/;

/** Source: OpenAI's answer to an unknown key. */
const WRONG_KEY = {
  message:
    "Incorrect API key provided: sk-wrong. You can find your API key at https://platform.openai.com/account/api-keys.",
  type: "invalid_request_error",
  param: null,
  code: "invalid_api_key",
};

export function obey(request: ParsedRequest): Reply {
  if (isSummaryRequest(request)) return goodSummary(request);
  const { orders, doneCount } = newestOrders(request);
  const [verb, argument] = orders[doneCount] ?? ["say", "Done."];
  switch (verb) {
    case "run":
      return { parts: [call("bash", { command: argument })] };
    case "ask":
      return { parts: [call("ask_user", argument)] };
    case "call": {
      const [name = "", ...input] = argument.split(" ");
      return { parts: [call(name, input.join(" "))] };
    }
    case "slowly":
      return { parts: [text(argument)], chunkChars: 5, chunkDelayMs: 100 };
    case "refuse":
      return { error: { status: 400, body: { error: { message: argument || "No.", code: "refused" } } } };
    case "bar":
      return { error: { status: 401, body: { error: WRONG_KEY } } };
    default:
      return { parts: [text(argument)] };
  }
}

type Order = readonly [verb: string, words: string];

/** The orders of the last message that has any, and how many were carried out since. */
function newestOrders(request: ParsedRequest): {
  readonly orders: readonly Order[];
  readonly doneCount: number;
} {
  let orders: readonly Order[] = [];
  let doneCount = 0;
  for (const item of request.items) {
    if (item.type === "call") doneCount += 1;
    if (item.type !== "message" || item.role !== "user") continue;
    const lines = item.parts.flatMap((part) => (part.type === "text" ? part.text.split("\n") : []));
    const found = lines.flatMap((line): Order[] => {
      const [, verb, argument] = ORDER.exec(line) ?? [];
      return verb === undefined ? [] : [[verb, argument ?? ""]];
    });
    if (found.length === 0) continue;
    orders = found;
    doneCount = 0;
  }
  return { orders, doneCount };
}
