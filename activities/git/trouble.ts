/** Why a remote cannot be worked with, in words for people. */

/** `credential`: it wants one, or another; `unknown`: no such repository, also said where a credential is missing. */
export interface RemoteTrouble {
  readonly kind: "credential" | "unknown" | "away" | "no-git";
  readonly message: string;
  readonly fix: string;
}

/** There is no credential where one is configured: git is not even called. */
export class CredentialUnavailable extends Error {
  override readonly name = "CredentialUnavailable";
  readonly trouble: RemoteTrouble;

  constructor(trouble: RemoteTrouble) {
    super(`${trouble.message}. ${trouble.fix}`);
    this.trouble = trouble;
  }
}
