/** Whether the object store that is chosen can be used: before work begins, and in `doctor`. */
import { randomUUID } from "node:crypto";
import { reasonOf } from "../activities/contract/errors.ts";
import { openObjectStore, type ObjectStore } from "../activities/store/object-store.ts";
import { ServiceMissing, WrongSettings } from "./service-missing.ts";

const FIX =
  "Set LONGHAUL_STORE to s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION, with credentials that may put, get and delete objects there, or unset it.";

/** @param address of LONGHAUL_STORE @throws WrongSettings */
export function chosenObjectStore(address: string | undefined): ObjectStore | undefined {
  if (address === undefined) return undefined;
  try {
    return openObjectStore(address);
  } catch (error) {
    throw new WrongSettings(`LONGHAUL_STORE: ${reasonOf(error)}`);
  }
}

const PROBE = Buffer.from("longhaul");

/** Writes, reads and removes a small object. @throws ServiceMissing */
export async function checkObjectStore(objects: ObjectStore | undefined): Promise<void> {
  if (objects === undefined) return;
  const key = `probe-${randomUUID()}`;
  try {
    await objects.put(key, { byteLength: PROBE.byteLength, pieces: () => [PROBE] });
    const pieces: Uint8Array[] = [];
    for await (const piece of objects.read(key)) pieces.push(piece);
    if (!Buffer.concat(pieces).equals(PROBE)) throw new Error("it gave back something else than was put");
    await objects.remove([key]);
  } catch (error) {
    throw new ServiceMissing({
      service: "The object store",
      address: objects.address,
      problem: "cannot be used",
      reason: reasonOf(causeOf(error)),
      fix: FIX,
      cause: error,
    });
  }
}

/** What the store's client said, without our own words around it. */
function causeOf(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== "" ? cause : error;
}
