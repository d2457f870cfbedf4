/** Reports to the model that the sandbox's firewall refused an address: to the program it looks like a server that is down. */
import { firstOf } from "../text/lists.ts";
import type { CommandState, Sandbox } from "../sandbox/sandbox.ts";

/** What programs print when a connection fails. The firewall is queried only then, as that takes some 0.4 s. */
const SIGNS =
  /ECONNREFUSED|EHOSTUNREACH|EPERM|EACCES|PermissionError|connection refused|operation not permitted|permission denied|(could|can)(not| not|n't) (connect|reach)|failed to (connect|establish)|unable to connect|unreachable|connection error|fetch failed/i;
const MAX_NAMED = 5;

/** @returns undefined if nothing was refused while the command ran */
export async function networkNote(
  { refused }: Pick<Sandbox, "refused">,
  state: CommandState,
  output: string,
): Promise<string | undefined> {
  if (refused === undefined || !("durationMs" in state) || !SIGNS.test(output)) return undefined;
  const found = await refused(state.durationMs);
  if (found.length === 0) return undefined;
  const { shown, more } = firstOf(found, MAX_NAMED);
  const named = shown.map(({ address, port }) => `${address} port ${port}`);
  const addresses = [...new Set(shown.map(({ address }) => address))];
  return (
    `[the sandbox's firewall refused ${named.join(", ")}${more > 0 ? " and others" : ""}: it is not on the ` +
    `public internet, so another attempt will fail too. The user can allow it for a new session: sandbox.allow: [${addresses.join(", ")}]]`
  );
}
