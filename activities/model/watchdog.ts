/** How long a provider may stay silent, given its location and its model, and the timers that end a call which is silent for longer. */
import { hostname, networkInterfaces } from "node:os";
import { USUAL_WAITS } from "../config/agent-config.ts";
import type { Deadlines } from "../config/run-policy.ts";
import { isLoopback } from "../process/outgoing-fetch.ts";
import type { Endpoint } from "./endpoint.ts";
import { ModelError, type ModelRequest } from "./model.ts";
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
export function toDeadlines({ target, deadlines }: ModelRequest, { baseUrl }: Endpoint): NamedDeadlines {
  const { timeouts: own = {}, name } = target.provider;
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
    thinkingMs: thinkingMs === 0 ? undefined : Math.max(firstTokenMs, thinkingMs),
    answerMs,
    settings: {
      connect: connect.setting,
      firstToken: first.setting,
      silence: isSilent ? thinking : setting("silence"),
      thinking,
    },
  };
}

interface Machine {
  readonly name: string;
  readonly interfaces: Readonly<
    Record<string, readonly { readonly address: string; readonly family: string }[] | undefined>
  >;
}

/** Also by the machine's own name, or an address that one of its interfaces has, as people write it for a server that listens for others too. */
export function isOnThisMachine(
  baseUrl: string | undefined,
  machine: Machine = { name: hostname(), interfaces: networkInterfaces() },
): boolean {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return false;
  const host = new URL(baseUrl).hostname.toLowerCase();
  if (isLoopback(baseUrl) || OWN_HOSTS.has(host)) return true;
  const name = machine.name.toLowerCase();
  if (name !== "" && (host === name || host === `${name}.local`)) return true;
  return Object.values(machine.interfaces)
    .flatMap((addresses) => addresses ?? [])
    .some(({ address, family }) => host === hostOf(address, family));
}

/** As a URL names it. */
function hostOf(address: string, family: string): string | undefined {
  if (family === "IPv4") return address;
  const url = `http://[${address}]`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** After this long without a piece, bytes that carry none are reported. Chosen: about when a person begins to wonder. */
const WONDER_MS = 5_000;
/** A piece is here at the latest this long after its bytes: twice as long as pieces are gathered. */
const CARRIED_MS = 1_000;

/** One timer for the three silences of a provider (no headers, no first piece, no next piece), one for the whole answer. */
export class Watchdog {
  readonly #deadlines: NamedDeadlines;
  readonly #onSilent: (error: ModelError) => void;
  readonly #onHidden: () => void;
  /** Undefined while nothing is to be reported: between pieces of text or a call, and after a report. */
  #reportFrom: number | undefined = performance.now() + WONDER_MS;
  #report: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #end: NodeJS.Timeout;
  #phase: "connect" | "first" | "next" = "connect";
  /** How long a silence in mid-answer may be, and the setting that says so. */
  #silence: { readonly ms: number; readonly setting: string };

  /**
   * Starts at once.
   * @param onSilent called at most once, with an error of class `silent` or `too-long` that names the deadline
   * @param onHidden called if bytes come that carry no piece: once before the first piece, and once after thoughts that follow one
   */
  constructor(deadlines: NamedDeadlines, onSilent: (error: ModelError) => void, onHidden: () => void) {
    this.#deadlines = deadlines;
    this.#silence = { ms: deadlines.silenceMs, setting: deadlines.settings.silence };
    this.#onSilent = onSilent;
    this.#onHidden = onHidden;
    this.#end = setTimeout(() => {
      this.stop();
      const seconds = `${Math.round(deadlines.answerMs / 1_000)} s`;
      const message = `The model's answer was not complete after ${seconds} (limits.modelTimeout). The call was ended.`;
      onSilent(new ModelError(message, { class: "too-long" }));
    }, deadlines.answerMs);
    this.#arm(deadlines.connectMs);
  }

  /** The response's headers have arrived. */
  connected(): void {
    if (this.#phase !== "connect") return;
    this.#phase = "first";
    this.#arm(this.#deadlines.firstTokenMs);
  }

  /** A piece of the answer has arrived. */
  heard(): void {
    this.#reportFrom = undefined;
    this.#endReport();
    // Thousands of pieces a second: one timer is refreshed, not replaced.
    if (this.#phase === "next") {
      this.#timer?.refresh();
      return;
    }
    this.#phase = "next";
    this.#arm(this.#silence.ms);
  }

  /** Bytes have arrived that are not a piece of the answer: a comment, or an event that says that it continues. */
  alive(): void {
    if (this.#phase !== "connect") this.#timer?.refresh();
    if (this.#reportFrom === undefined || performance.now() < this.#reportFrom) return;
    this.#report ??= setTimeout(() => {
      this.#reportFrom = undefined;
      this.#onHidden();
    }, CARRIED_MS);
  }

  /**
   * The model began to reason, perhaps without showing it: it may now be silent for longer, and for as long again between the
   * pieces that follow.
   */
  thinking(): void {
    const { firstTokenMs, thinkingMs, settings } = this.#deadlines;
    if (thinkingMs !== undefined) this.#silence = { ms: thinkingMs, setting: settings.thinking };
    if (this.#phase !== "next") return;
    this.#reportFrom = performance.now() + WONDER_MS;
    this.#endReport();
    if (thinkingMs !== undefined) return this.#arm(thinkingMs);
    this.#phase = "first";
    this.#arm(firstTokenMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#end);
    this.#endReport();
    this.#timer = undefined;
  }

  #endReport(): void {
    if (this.#report === undefined) return;
    clearTimeout(this.#report);
    this.#report = undefined;
  }

  #arm(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.stop();
      this.#onSilent(new ModelError(this.#words(ms), { class: "silent" }));
    }, ms);
  }

  #words(ms: number): string {
    const seconds = `${ms / 1_000} s`;
    const { settings } = this.#deadlines;
    switch (this.#phase) {
      case "connect":
        return `The model's provider sent no response headers within ${seconds} (${settings.connect}). The call was ended and can be made again.`;
      case "first":
        return `The model's provider sent headers but no token within ${seconds} (${settings.firstToken}). The call was ended and can be made again.`;
      case "next":
        return `The model's provider fell silent in mid-answer for ${seconds} (${this.#silence.setting}). The call was ended and can be made again.`;
    }
  }
}
