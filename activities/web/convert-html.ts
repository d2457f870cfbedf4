/**
 * Converts a page's HTML in a thread of its own: a hostile page costs at most 128 MB of memory and 5 s of processor time, and the
 * worker goes on meanwhile. What the converter cannot do in that time is read as plain text.
 */
import { Worker } from "node:worker_threads";

export interface HtmlPage {
  readonly html: string;
  /** Relative links are resolved by it. */
  readonly address: string;
}

/** What the thread is asked for. */
export interface Conversion extends HtmlPage {
  readonly to: "markdown" | "text";
}

export interface Converted {
  readonly text: string;
  readonly title?: string;
  readonly remarks: readonly string[];
}

type Outcome = ({ readonly ok: true } & Converted) | { readonly ok: false; readonly why: string };

/** Of the two kinds of V8's heap. Chosen: what a page may cost beside a worker; one that needs more is read as bare text. */
const MEMORY_MB = { maxOldGenerationSizeMb: 112, maxYoungGenerationSizeMb: 16 };
/** Chosen, in all: 4 MB of HTML took 0.9 s (2026-11). */
const MARKDOWN_MS = 4_000;
const TEXT_MS = 1_000;

/** @throws the signal's reason if it is aborted */
export async function convertHtml(page: HtmlPage, signal: AbortSignal): Promise<Outcome> {
  const markdown = await inThread({ ...page, to: "markdown" }, MARKDOWN_MS, signal);
  if (markdown.ok) return markdown;
  const text = await inThread({ ...page, to: "text" }, TEXT_MS, signal);
  if (!text.ok) return text;
  return { ...text, remarks: [`its HTML ${markdown.why}, so this is its bare text`] };
}

async function inThread(conversion: Conversion, timeoutMs: number, signal: AbortSignal): Promise<Outcome> {
  signal.throwIfAborted();
  // It has neither our variables nor our standard output.
  const thread = new Worker(new URL("./convert-thread.ts", import.meta.url), {
    workerData: conversion,
    resourceLimits: MEMORY_MB,
    env: {},
    execArgv: [],
    stdin: false,
    stdout: true,
    stderr: true,
  });
  const stop = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const onStop = () => resolve({ ok: false, why: `could not be converted in ${timeoutMs / 1_000} s` });
  stop.addEventListener("abort", onStop, { once: true });
  thread.once("message", (converted: Converted) => resolve({ ok: true, ...converted }));
  thread.once("error", (error: Error & { readonly code?: unknown }) => {
    const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
    resolve({ ok: false, why: isMemory ? "needs more than 128 MB to convert" : "could not be converted" });
  });
  thread.once("exit", () => resolve({ ok: false, why: "could not be converted" }));
  try {
    const outcome = await promise;
    signal.throwIfAborted();
    return outcome;
  } finally {
    stop.removeEventListener("abort", onStop);
    await thread.terminate();
  }
}
