/** `longhaul allow ID DOMAIN`: one more name for a session's sandbox with `network: listed`. */
import type { Command } from "commander";
import { closedAddress, domainProblem } from "../../activities/config/egress-domains.ts";
import { allowDomain } from "../../activities/store/egress.ts";
import { notPossible, usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { parseSettings, SESSION, withSession } from "../sessions/with-session.ts";

export function allowCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("<domain>", "a host name, *.name for those below one, or a group");
  return (reference: string, domain: string) => {
    const problem = domainProblem(domain);
    if (problem !== undefined) throw usageError(`${domain} cannot be allowed: ${problem}.`);
    return withSession(reference, async ({ store, user }, row) => {
      const { id } = row;
      const { network, allow } = parseSettings(row).sandbox;
      if (network !== "listed") {
        throw notPossible(
          network === "none"
            ? `The sandbox of ${id} has no network (sandbox.network: none).`
            : `The sandbox of ${id} reaches every public name already (sandbox.network: bridge).`,
          "A list of names applies only to sessions that were started with --network listed.",
        );
      }
      const closed = closedAddress(domain, allow);
      if (closed !== undefined) {
        throw notPossible(
          `${domain} cannot be allowed: ${closed} for this session.`,
          "Add the address to sandbox.allow in your settings file, and start a new session.",
        );
      }
      await allowDomain(store, { sessionId: id, domain, by: user ?? "person" });
      output.note(
        `${domain} is allowed for ${id}: for its next command, and within a second for a command that is running.\n`,
      );
    });
  };
}
