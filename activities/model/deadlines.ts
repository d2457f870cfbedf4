/** How long a provider may stay silent, given its location and its model. Pure. */
import type { Deadlines } from "../config/run-policy.ts";
import { isLoopback } from "../process/outgoing-fetch.ts";
import type { Endpoint } from "./endpoint.ts";
import type { ModelRequest } from "./model.ts";
import { isThinking } from "./request/wire-rules.ts";

/** Deadlines with the names of their settings, for the message if one passes. */
export interface NamedDeadlines extends Deadlines {
  readonly settings: Readonly<Record<"connect" | "firstToken" | "silence" | "thinking", string>>;
}

/**
 * A server on this machine reads the whole request before it sends its first header, which may take minutes: it gets the
 * time of a first token for that. A model that thinks may be silent in mid-answer for longer than others, as far as is known
 * before the answer; what the answer itself shows, the watchdog learns from `thinkingMs`.
 */
export function deadlinesOf({ target, deadlines }: ModelRequest, { baseUrl }: Endpoint): NamedDeadlines {
  const { timeouts: own = {}, name } = target.provider ?? {};
  const setting = (key: keyof typeof own) =>
    own[key] === undefined ? `limits.${key}Timeout` : `providers.${name}.timeouts.${key}`;
  const firstTokenMs = own.firstToken ?? deadlines.firstTokenMs;
  const isPatient = own.connect === undefined && baseUrl !== undefined && isLoopback(baseUrl);
  const { thinkingMs = 0 } = own.silence === undefined ? deadlines : {};
  const thinking = thinkingMs > firstTokenMs ? "limits.thinkingTimeout" : setting("firstToken");
  const isSilent = own.silence === undefined && isThinking(target);
  return {
    connectMs: isPatient ? firstTokenMs : (own.connect ?? deadlines.connectMs),
    firstTokenMs,
    silenceMs: isSilent ? Math.max(firstTokenMs, thinkingMs) : (own.silence ?? deadlines.silenceMs),
    ...(thinkingMs === 0 ? {} : { thinkingMs: Math.max(firstTokenMs, thinkingMs) }),
    answerMs: deadlines.answerMs,
    settings: {
      connect: setting(isPatient ? "firstToken" : "connect"),
      firstToken: setting("firstToken"),
      silence: isSilent ? thinking : setting("silence"),
      thinking,
    },
  };
}
