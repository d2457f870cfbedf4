/** Times in settings, in ms. */
import { z } from "zod";

/**
 * 24 days: Node fires a timer for more than 2³¹ − 1 ms, which are 20 hours more, at once, and what waits for another timer's end
 * waits somewhat longer. Source: Node's documentation of `setTimeout`.
 */
const MAX_TIMER_MS = 24 * 86_400_000;
/** Source: ours, a year. */
export const MAX_WAIT_MS = 365 * 86_400_000;

const ms = z.number().int().positive();

/** What a process waits for with a timer of its own. */
export const timerMs = ms.max(MAX_TIMER_MS, `at most ${MAX_TIMER_MS} ms, 24 days`);
/** What a workflow waits for. */
export const waitMs = ms.max(MAX_WAIT_MS, `at most ${MAX_WAIT_MS} ms, a year`);
