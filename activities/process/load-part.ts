/** Loads a part of this program when it is first needed. */

/**
 * If the part cannot be loaded, the program's files were removed or replaced since it started, so the process can no longer be
 * relied on. The error is left unhandled, which ends the worker, and another worker takes its work over. The returned promise
 * then never settles.
 */
export function loadPart<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch((cause: unknown) => {
    const message = "a part of this program can no longer be loaded: were its files removed or replaced?";
    void Promise.reject(new Error(message, { cause }));
    return new Promise<never>(() => undefined);
  });
}
