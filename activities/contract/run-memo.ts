/** What the memo of each run that Longhaul starts says of its owner, for those who find the run under an id of theirs. */

/** Added to the rest of the memo. */
export interface OwnerMemo extends Readonly<Record<string, unknown>> {
  /** Id of the installation that started the run, or whose run started it. */
  readonly installation: string;
}

/** The owner of a run, for the memo of its children. @returns undefined for a run that was started without Longhaul */
export function ownerMemo(memo: Readonly<Record<string, unknown>> | undefined): OwnerMemo | undefined {
  const installation = memo?.["installation"];
  return typeof installation === "string" && installation !== "" ? { installation } : undefined;
}
