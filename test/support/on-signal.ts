/** Ends what was brought up where the process is asked to end. */

/** @returns what stops listening */
export function onSignal(end: () => Promise<void>): () => void {
  const listener = () => {
    // Calls in flight fail as what they call goes away.
    process.on("uncaughtException", () => undefined);
    void end().finally(() => process.exit(130));
  };
  process.once("SIGINT", listener).once("SIGTERM", listener);
  return () => process.off("SIGINT", listener).off("SIGTERM", listener);
}
