/** What `verify` came to, in words and as a mark. */
import { isUnverified, type VerifyOutcome } from "../../activities/contract/verify.ts";
import type { SessionRow } from "../../activities/store/reading.ts";

export const VERIFIED_WORDS: Readonly<Record<VerifyOutcome, string>> = {
  passed: "verified",
  failed: "not verified: failed",
  unavailable: "not verified: could not be run",
  "changed-checks": "verified, with changed checks",
};

const MARKS: Readonly<Record<string, string>> = { passed: "✓", failed: "✗", "changed-checks": "✓" };

/** Whether a session's work counts as not verified (exit code 9). */
export function isNotVerified({ verified, config }: Pick<SessionRow, "verified" | "config">): boolean {
  const { verify } = config as { readonly verify?: { readonly onProtected?: string } };
  const refusesChangedChecks = verify?.onProtected === "refuse" ? true : undefined;
  return isUnverified(verified, { refusesChangedChecks });
}

/** For figures of one session. @param outcome as a row has it, also one that a later version wrote */
export const verifiedText = (outcome: string): string =>
  `${verifiedMark(outcome)} ${(VERIFIED_WORDS as Readonly<Record<string, string>>)[outcome] ?? outcome}`;

/** For lists. */
export const verifiedMark = (outcome: string): string => MARKS[outcome] ?? "?";
