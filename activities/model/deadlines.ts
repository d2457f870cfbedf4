/** How long a provider may stay silent, given its location and its model. Pure. */
import { USUAL_WAITS } from "../config/agent-config.ts";
import type { Deadlines } from "../config/run-policy.ts";
import { isLoopback } from "../process/outgoing-fetch.ts";
import type { Endpoint } from "./endpoint.ts";
import type { ModelRequest } from "./model.ts";
import { isThinking } from "./request/wire-rules.ts";

/** Deadlines with the names of their settings, for the message if one passes. */
export interface NamedDeadlines extends Deadlines {
  readonly settings: Readonly<Record<"connect" | "firstToken" | "silence" | "thinking", string>>;
}

/** Any address of this machine, and how a container calls the machine it runs on. Source: documentation of Docker and Podman. */
const OWN_HOSTS: ReadonlySet<string> = new Set([
  "0.0.0.0",
  "[::]",
  "host.docker.internal",
  "gateway.docker.internal",
  "host.containers.internal",
]);

/**
 * A server on this machine reads the whole request before it sends its first byte, which takes minutes on a small machine: until
 * then, unless a time is configured, only that of the whole answer counts. A model that thinks may be silent in mid-answer for
 * longer than others, as far as is known before the answer; what the answer itself shows, the watchdog learns from `thinkingMs`.
 */
export function deadlinesOf({ target, deadlines }: ModelRequest, { baseUrl }: Endpoint): NamedDeadlines {
  const { timeouts: own = {}, name } = target.provider ?? {};
  const setting = (key: keyof typeof own) =>
    own[key] === undefined ? `limits.${key}Timeout` : `providers.${name}.timeouts.${key}`;
  const { answerMs, thinkingMs: thinks = 0 } = deadlines;
  const firstTokenMs = own.firstToken ?? deadlines.firstTokenMs;
  const isLocal = isOnThisMachine(baseUrl);
  const isUsual = own.firstToken === undefined && firstTokenMs === USUAL_WAITS.firstTokenMs;
  const first =
    isLocal && isUsual
      ? { ms: answerMs, setting: "limits.modelTimeout" }
      : { ms: firstTokenMs, setting: setting("firstToken") };
  const connect =
    isLocal && own.connect === undefined
      ? first
      : { ms: own.connect ?? deadlines.connectMs, setting: setting("connect") };
  const thinkingMs = own.silence === undefined ? thinks : 0;
  const thinking = thinkingMs > firstTokenMs ? "limits.thinkingTimeout" : setting("firstToken");
  const isSilent = own.silence === undefined && isThinking(target);
  return {
    connectMs: connect.ms,
    firstTokenMs: first.ms,
    silenceMs: isSilent ? Math.max(firstTokenMs, thinkingMs) : (own.silence ?? deadlines.silenceMs),
    ...(thinkingMs === 0 ? {} : { thinkingMs: Math.max(firstTokenMs, thinkingMs) }),
    answerMs,
    settings: {
      connect: connect.setting,
      firstToken: first.setting,
      silence: isSilent ? thinking : setting("silence"),
      thinking,
    },
  };
}

function isOnThisMachine(baseUrl: string | undefined): boolean {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return false;
  return isLoopback(baseUrl) || OWN_HOSTS.has(new URL(baseUrl).hostname);
}
