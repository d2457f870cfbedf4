/** Exit codes of the client and the one error that carries them. */
import type { DeliveryState } from "../../activities/contract/delivery.ts";

/** The exit code reports the task's outcome, never the client's own success. */
export const exitCodes = {
  completed: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  missing: 4,
  impossible: 5,
  cancelled: 6,
  /** The session waits for a person, and the watcher asked to be notified of that. */
  waits: 7,
  undelivered: 8,
  unverified: 9,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The message: what happened, and one way to fix it. Printed without a stack. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly exitCode: ExitCode;
  readonly fix: string | undefined;

  constructor(
    exitCode: ExitCode,
    message: string,
    options: { fix?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.exitCode = exitCode;
    this.fix = options.fix;
  }
}

export function usageError(message: string, fix?: string): ClientError {
  return new ClientError(exitCodes.usage, message, { fix });
}

const READ_TROUBLES: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is a file",
  EACCES: "cannot be read: you have no permission",
  EISDIR: "is a folder, and a file is needed",
  EFBIG: "is too large",
  ENOTSUP: "is no regular file",
};

/** A file or folder that a person named. @param error what reading it threw */
export function unreadable(what: string, error: unknown): ClientError {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return usageError(`${what} ${READ_TROUBLES[code] ?? `cannot be read (${code})`}.`);
}

const WRITE_TROUBLES: Readonly<Record<string, string>> = {
  ENOENT: "its folder does not exist",
  ENOTDIR: "a part of its path is not a folder",
  EEXIST: "a file is in its place",
  EISDIR: "it is a folder",
  EACCES: "you have no permission",
  EPERM: "you have no permission",
  EROFS: "its file system is read-only",
  ENOSPC: "no space is left on its file system",
  EDQUOT: "your disk quota is used up",
  ENAMETOOLONG: "its name is too long",
};

/**
 * A file or folder that a person named cannot be written.
 * @param error what writing it threw
 * @returns the error itself if it did not come from the file system
 */
export function unwritable(what: string, error: unknown, fix?: string): unknown {
  if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return error;
  const code = String(error.code);
  return new ClientError(
    exitCodes.impossible,
    `${what} cannot be written: ${WRITE_TROUBLES[code] ?? code}.`,
    { fix, cause: error },
  );
}

/** The named session does not exist. */
export class NoSuchSession extends ClientError {}

export function noSuchSession(id: string, fix = "`longhaul list` shows all sessions."): ClientError {
  return new NoSuchSession(exitCodes.impossible, `There is no session ${id}.`, { fix });
}

export function notPossible(message: string, fix?: string): ClientError {
  return new ClientError(exitCodes.impossible, message, { fix });
}

/** A service or credential is missing: says which, where, and one way to fix it. */
export function missing(message: string, fix: string, cause?: unknown): ClientError {
  return new ClientError(exitCodes.missing, message, { fix, cause });
}

/** Failure types for a missing service that the session needs: no work was done. */
const SERVICES_MISSING: readonly string[] = [
  "ImageMissing",
  "ContainerUnavailable",
  "KeyMissing",
  "McpUnavailable",
];

/**
 * The exit code for a session's outcome. `active` and `waiting` mean that the run has not ended.
 * @param failure the failure's type
 */
export function toExitCode(
  status: string,
  {
    delivery = "none",
    failure,
    isNotVerified = false,
  }: { delivery?: DeliveryState; failure?: string | undefined; isNotVerified?: boolean } = {},
): ExitCode {
  switch (status) {
    case "completed":
      if (isNotVerified) return exitCodes.unverified;
      return delivery === "refused" ? exitCodes.undelivered : exitCodes.completed;
    case "max_steps":
      return exitCodes.limit;
    case "cancelled":
      return exitCodes.cancelled;
    default:
      if (failure === "PolicyRefused") return exitCodes.usage;
      return failure !== undefined && SERVICES_MISSING.includes(failure)
        ? exitCodes.missing
        : exitCodes.failed;
  }
}
