/** Times in settings, in ms. */
import { z } from "zod";

/**
 * 24 days: Node fires a timer of more than 2³¹ − 1 ms (20 hours more) at once, and a timer behind another waits
 * somewhat longer. Source: Node's documentation of `setTimeout`.
 */
const MAX_TIMER_MS = 24 * 86_400_000;
/** Source: ours, a year. */
export const MAX_WAIT_MS = 365 * 86_400_000;

const ms = z.number().int().positive();

/** For times that a process waits with its own timer. */
export const timerMs = ms.max(MAX_TIMER_MS, `at most ${MAX_TIMER_MS} ms, 24 days`);
/** For times that a workflow waits. */
export const waitMs = ms.max(MAX_WAIT_MS, `at most ${MAX_WAIT_MS} ms, a year`);
