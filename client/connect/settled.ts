/** Effects in Temporal whose answer may be lost: Temporal is asked what became of them. */
import { plainReason } from "../../temporal/plain-reason.ts";
import { ClientError, missing } from "../console/errors.ts";

interface Effect<T> {
  readonly make: () => Promise<T>;
  /** What Temporal has of it; undefined if it was not made. */
  readonly find: () => Promise<T | undefined>;
  /** Such as `it started the session`. */
  readonly what: string;
  /** What to do if Temporal does not say so either. Doing it all again must be safe. */
  readonly again: string;
}

/**
 * Makes the effect. A failure is not a no: whatever it was, Temporal is asked before it counts.
 * @throws ClientError (missing) if Temporal does not say what became of it; else the failure, and nothing was made
 */
export async function settled<T>({ make, find, what, again }: Effect<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof ClientError) throw error;
    const found = await find().catch((unanswered: unknown) => {
      throw missing(`Temporal did not say whether ${what} (${plainReason(unanswered)}).`, again, error);
    });
    if (found === undefined) throw error;
    return found;
  }
}
