/**
 * Loaded once, before any workflow (worker/bundle.ts). For the "Call Stack" of its Web UI, Temporal's SDK records a stack
 * with each promise of a workflow, and looks each line up in the bundle's source map: with V8's 10 lines that was a quarter
 * of the workflow thread's time, with 4 it is 17 % (CPU profiles of the same steps, 2026-11). They still name what a run
 * waits for.
 */
const LINES = 4;

Object.assign(Error, { stackTraceLimit: LINES });
