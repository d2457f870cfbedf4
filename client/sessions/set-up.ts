/** What must be there before a session is started: everything on this machine, or nothing but the addresses. */
import type { LocalServices } from "../setup/services.ts";
import { isSetupOff } from "../config/config.ts";
import { openServices, type Services } from "../connect/connection.ts";

/**
 * Brings up what is missing and a worker, unless the person said that those are elsewhere (`--no-setup`,
 * LONGHAUL_NO_SETUP=1).
 * @throws ServiceMissing
 */
export async function openPrepared(
  flags: { readonly setup: boolean },
  say: (line: string) => void,
): Promise<Services> {
  let local: LocalServices | undefined;
  if (flags.setup && !isSetupOff()) {
    const { prepare } = await import("../setup/up.ts");
    local = await prepare({ say });
  }
  return openServices(local);
}
