/** Starts the rehearsal model. `LONGHAUL_REHEARSAL_PORT` is its port, `LONGHAUL_REHEARSAL_DELAY_MS` its pace. */
import { estimateText } from "../../activities/transcript/tokens.ts";
import { createModelServer } from "./model-server/create-model-server.ts";
import { FLASHCARDS } from "./flashcards/script.ts";
import { createRehearsal } from "./rehearsal.ts";

/** A word or two every 8 ms: lively to watch, and the whole script in about a minute. */
const DEFAULT_DELAY_MS = 8;

const MODEL = { window: 16_000, maxOutput: 2_000, reasoning: true } as const;

function setting(name: string, fallback: number, highest: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= highest) return value;
  console.error(`${name} must be an integer from 0 to ${highest}, not "${text}".`);
  process.exit(2);
}

const server = await createModelServer({
  port: setting("LONGHAUL_REHEARSAL_PORT", 8_788, 65_535),
  // With and without the provider's name: what is sent depends on the wire.
  models: { flashcards: MODEL, "rehearsal/flashcards": MODEL },
  countTokens: estimateText,
  reply: createRehearsal({
    script: FLASHCARDS,
    delayMs: setting("LONGHAUL_REHEARSAL_DELAY_MS", DEFAULT_DELAY_MS, 10_000),
  }),
});
console.log(`The rehearsal model listens on ${server.url} and plays ${FLASHCARDS.length} steps.`);

const close = () => void server.close();
process.once("SIGTERM", close);
process.once("SIGINT", close);
