/** The whole script: more than 60 steps, the last one without calls. */
import type { ScriptStep } from "../script-step.ts";
import { FIRST_STEPS } from "./first-steps.ts";
import { CLOSING_TEXT, LAST_STEPS } from "./last-steps.ts";
import { MIDDLE_STEPS } from "./middle-steps.ts";

export const FLASHCARDS: readonly ScriptStep[] = [
  ...FIRST_STEPS,
  ...MIDDLE_STEPS,
  ...LAST_STEPS,
  { text: CLOSING_TEXT, calls: [] },
];
