/** Handles Ctrl-C during set-up: running services are recorded, kept, and listed. */
import { endPrograms, isAlive } from "./processes.ts";
import { projectHome, type Say } from "./services.ts";
import { readState } from "./state.ts";

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Runs set-up work. If a signal arrives meanwhile, prints what stays up and ends this process. */
export async function reportingWhatStays<T>(
  { home = projectHome, say }: { readonly home?: string; readonly say: Say },
  action: () => Promise<T>,
): Promise<T> {
  let interrupted = false;
  const onSignal = (signal: keyof typeof EXIT_CODES) => {
    interrupted = true;
    void endPrograms()
      .then(() => whatStays(home))
      .then(say)
      .finally(() => process.exit(EXIT_CODES[signal]));
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await action();
  } catch (error) {
    // A failure now is a consequence of the signal, whose exit code counts.
    if (interrupted) await new Promise(() => undefined);
    throw error;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function whatStays(home: string): Promise<string> {
  const names: string[] = [];
  for (const [name, service] of Object.entries(readState(home).services))
    if (await isAlive(service)) names.push(`${name.replace("next-", "")} (process ${service.pid})`);
  return names.length === 0
    ? "Interrupted: nothing that longhaul started is running."
    : `Interrupted. These keep running for the next start: ${names.join(", ")}. End them with: longhaul down`;
}
