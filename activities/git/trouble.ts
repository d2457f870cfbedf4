/** Why a remote cannot be worked with, in words for people. */

/** `credential`: a credential is missing or wrong; `unknown`: there is no such repository, also reported without a credential. */
export interface RemoteTrouble {
  readonly kind: "credential" | "unknown" | "away" | "no-git";
  readonly message: string;
  readonly fix: string;
}

/** There is no credential if one is configured: git is not even called. */
export class CredentialUnavailable extends Error {
  override readonly name = "CredentialUnavailable";
  readonly trouble: RemoteTrouble;

  constructor(trouble: RemoteTrouble) {
    super(`${trouble.message}. ${trouble.fix}`);
    this.trouble = trouble;
  }
}
