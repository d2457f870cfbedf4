/** Starts the rehearsal model. `LONGHAUL_REHEARSAL_PORT` is its port, `LONGHAUL_REHEARSAL_DELAY_MS` its pace. */
import { createRehearsal } from "./rehearsal.ts";
import { serveRehearsal } from "./server.ts";
import { FLASHCARDS } from "./flashcards/last-steps.ts";

/** A word or two every 8 ms: lively to watch, and the whole script in about a minute. */
const DEFAULT_DELAY_MS = 8;

function setting(name: string, fallback: number, highest: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= highest) return value;
  console.error(`${name} must be an integer from 0 to ${highest}, not "${text}".`);
  process.exit(2);
}

const delayMs = setting("LONGHAUL_REHEARSAL_DELAY_MS", DEFAULT_DELAY_MS, 10_000);
const server = await serveRehearsal(
  createRehearsal({ script: FLASHCARDS, delayMs }),
  setting("LONGHAUL_REHEARSAL_PORT", 8_788, 65_535),
);
console.log(`The rehearsal model listens on ${server.url} and plays ${FLASHCARDS.length} steps.`);

const close = () => void server.close();
process.once("SIGTERM", close);
process.once("SIGINT", close);
