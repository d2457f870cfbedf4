/** Times in settings, in ms. */
import { z } from "zod";

/** Node fires a timer for longer at once. Source: Node's documentation of `setTimeout`, 2³¹ − 1. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Source: ours, a year. */
export const MAX_WAIT_MS = 365 * 86_400_000;

const ms = z.number().int().positive();

/** What a process waits for with a timer of its own. */
export const timerMs = ms.max(MAX_TIMER_MS, `at most ${MAX_TIMER_MS} ms, which are 24 days`);
/** What a workflow waits for. */
export const waitMs = ms.max(MAX_WAIT_MS, `at most ${MAX_WAIT_MS} ms, which are a year`);
