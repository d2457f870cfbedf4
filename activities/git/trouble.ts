/** Why a remote cannot be used, or work is not delivered, in words for people. */
import { passes } from "../contract/errors.ts";
import { shorten } from "../text/cut.ts";

const MAX_QUOTED_CHARS = 200;

/** A name or an address from a repository, on one line. */
export const quoted = (text: string): string => JSON.stringify(shorten(text, MAX_QUOTED_CHARS));

/** Why something is not done. `isPassing`: asking again may help. */
export interface Refusal {
  readonly refused: string;
  readonly isPassing: boolean;
}

export const refusal = (refused: string): Refusal => ({ refused, isPassing: false });

/**
 * `credential`: a credential is missing or wrong; `unknown`: there is no such repository, also reported without a credential; `away`: the
 * network, or a server that may answer later; `memory`: this worker's is short, so Git could not go on or was killed; `disk`: this
 * worker's own is full or read-only; `ours`: the worker's copy is damaged or
 * in use; `refused`: anything else, in Git's words.
 */
export interface RemoteTrouble {
  readonly kind: "credential" | "unknown" | "away" | "no-git" | "memory" | "disk" | "ours" | "refused";
  readonly message: string;
  readonly fix: string;
}

export const toRefusal = ({ kind, message, fix }: RemoteTrouble): Refusal => ({
  refused: `${message}. ${fix}`,
  isPassing: passes.git(kind),
});

/** The worker's own disk is full or read-only. */
export const isDiskError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && /^(ENOSPC|EROFS|EDQUOT)$/.test((error as NodeJS.ErrnoException).code ?? "");

/** A configured credential is not available, so git is not called. */
export class CredentialUnavailable extends Error {
  override readonly name = "CredentialUnavailable";
  readonly trouble: RemoteTrouble;

  constructor(trouble: RemoteTrouble) {
    super(toRefusal(trouble).refused);
    this.trouble = trouble;
  }

  get isPassing(): boolean {
    return toRefusal(this.trouble).isPassing;
  }
}
