/** Installs packages of Debian or Ubuntu, with only the variables that a download needs. */
import { childEnvironment } from "./environment.ts";
import { run } from "./processes.ts";
import { type Say, slowly } from "./progress.ts";

export const MAX_LOG_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 15 * 60_000;

/** First announces what it installs and why. @throws Error with apt-get's output in `stderr` */
export async function aptInstall(say: Say, what: string, packages: readonly string[]): Promise<void> {
  const env = { ...childEnvironment("installer"), DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args: string[]) =>
    run("apt-get", ["-q", "-y", ...args], { env, maxBuffer: MAX_LOG_BYTES, timeout: TIMEOUT_MS });
  await slowly(say, what, async () => {
    await apt("update");
    // Recommended packages would bring in a whole desktop.
    await apt("install", "--no-install-recommends", ...packages);
  });
}
