/** The worker's log: JSON lines on standard error, masked, with Temporal's own lines among them. */
import { isQueryError, reasonOf } from "../activities/contract/errors.ts";
import type { Logger as TemporalLogger, LogLevel } from "@temporalio/worker";
import { pino, type Logger } from "pino";
import type { Sanitizer } from "../activities/redaction/sanitizer.ts";

export type { Logger } from "pino";

/** Every line passes the sanitizer as a whole, so that no field, name or stack can reveal a secret. */
export function createLogger(level: string, sanitizer: Sanitizer, name = "worker"): Logger {
  const clean = (line: string) => process.stderr.write(`${sanitizer.clean(line.trimEnd())}\n`);
  const { isoTime: timestamp } = pino.stdTimeFunctions;
  // Temporal's lines have errors under `error`, which pino would write without their messages.
  // A query error says its statement and values, in its message, its stack and fields; its cause says why.
  const serializeError = (error: Error) =>
    pino.stdSerializers.err(isQueryError(error) ? new Error(reasonOf(error)) : error);
  const serializers = { error: serializeError, err: serializeError };
  return pino({ level, name, timestamp, serializers }, { write: clean });
}

/** Temporal's Runtime takes this as its logger. */
export function temporalLogger(logger: Logger): TemporalLogger {
  const child = logger.child({ from: "temporal" });
  const write = (level: LogLevel, message: string, meta: Record<string | symbol, unknown> = {}) => {
    // Symbol keys are internal to the SDK. A task's token is long, and whoever has it can complete the task.
    const { taskToken: _, ...fields } = Object.fromEntries(Object.entries(meta));
    child[levels[level]](fields, message);
  };
  return {
    log: write,
    trace: (message, meta) => write("TRACE", message, meta),
    debug: (message, meta) => write("DEBUG", message, meta),
    info: (message, meta) => write("INFO", message, meta),
    warn: (message, meta) => write("WARN", message, meta),
    error: (message, meta) => write("ERROR", message, meta),
  };
}

const levels = { TRACE: "trace", DEBUG: "debug", INFO: "info", WARN: "warn", ERROR: "error" } as const;
