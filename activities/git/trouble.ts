/** Why a remote cannot be used, or work is not delivered, in words for people. */
import { shorten } from "../contract/cut-text.ts";

const MAX_QUOTED_CHARS = 200;
const MAX_SERVER_CHARS = 300;

/** A name or an address from a repository, on one line. */
export const quoted = (text: string): string => JSON.stringify(shorten(text, MAX_QUOTED_CHARS));

/** A server's answer on one line, without characters that control a terminal. */
export const serverWords = (text: string): string =>
  shorten(text.replaceAll(/\p{Cc}+/gu, " "), MAX_SERVER_CHARS);

/** Why something is not done. `isPassing`: asking again may help. */
export interface Refusal {
  readonly refused: string;
  readonly isPassing: boolean;
}

export const refusal = (refused: string): Refusal => ({ refused, isPassing: false });

/** `credential`: a credential is missing or wrong; `unknown`: there is no such repository, also reported without a credential. */
export interface RemoteTrouble {
  readonly kind: "credential" | "unknown" | "away" | "no-git";
  readonly message: string;
  readonly fix: string;
}

export const refusalOf = ({ kind, message, fix }: RemoteTrouble): Refusal => ({
  refused: `${message}. ${fix}`,
  isPassing: kind === "away",
});

/** A configured credential is not available, so git is not called. */
export class CredentialUnavailable extends Error {
  override readonly name = "CredentialUnavailable";
  readonly trouble: RemoteTrouble;

  constructor(trouble: RemoteTrouble) {
    super(refusalOf(trouble).refused);
    this.trouble = trouble;
  }

  get isPassing(): boolean {
    return refusalOf(this.trouble).isPassing;
  }
}
