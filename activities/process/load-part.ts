/** A part of this program that is loaded when it is first needed. */

/**
 * If it cannot be loaded, the files of this program were removed or replaced since it started, and nothing that it does from
 * then on can be relied on. So the error is left unhandled, which ends a worker: another one takes its work over. What waits for
 * the part never learns of it.
 */
export function loadPart<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch((cause: unknown) => {
    const message = "a part of this program can no longer be loaded: were its files removed or replaced?";
    void Promise.reject(new Error(message, { cause }));
    return new Promise<never>(() => undefined);
  });
}
