/** `longhaul database client NAME`: a Postgres URL for one person, which shows only that person's sessions. */
import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { reasonOf } from "../../activities/contract/errors.ts";
import { clientRole, fitsRole, grantClient, revokeClient } from "../../activities/store/client-roles.ts";
import { openStore } from "../../activities/store/db.ts";
import { addressForRole, PostgresAddressWrong } from "../../activities/store/postgres-address.ts";
import { checkedName } from "../config/people.ts";
import { missing, notPossible, usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { operatorDatabaseUrl } from "../setup/services.ts";

interface DatabaseFlags {
  readonly revoke?: boolean;
}

export function databaseCommand(command: Command, output: Output) {
  command
    .argument("<what>", "client")
    .argument("<name>", "whose sessions: the name in LONGHAUL_USER")
    .option("--revoke", "remove the role; the sessions stay");
  return async (action: string, name: string, flags: DatabaseFlags): Promise<void> => {
    if (action !== "client") throw usageError("Write it as: longhaul database client NAME");
    checkedName(name, "NAME");
    const url = operatorDatabaseUrl();
    const store = openStore({ url, maxConnections: 1 });
    try {
      if (!fitsRole(await clientRole(store, name)))
        throw usageError(`The name ${name} is too long for a role of Postgres.`);
      if (flags.revoke !== true) await grant(name, url);
      else if (await revokeClient(store, name)) output.note(`The role of ${name} was removed.\n`);
      else throw notPossible(`${name} has no role in this database.`);
    } catch (error) {
      throw inWords(error);
    } finally {
      await store.close();
    }

    async function grant(owner: string, address: string): Promise<void> {
      const password = randomBytes(24).toString("base64url");
      // An address that cannot be said for another role is refused before there is one.
      const theirs = addressForRole(address, { role: await clientRole(store, owner), password });
      await grantClient(store, owner, password);
      output.note(
        `${owner}'s DATABASE_URL follows. It gives access to ${owner}'s sessions only. A second call creates a new password.\n`,
      );
      output.result(`${theirs}\n`);
    }
  };
}

function inWords(error: unknown): unknown {
  if (error instanceof PostgresAddressWrong)
    return usageError(`DATABASE_URL cannot be used: ${reasonOf(error)}.`, "Nothing was granted.");
  const { code } = (error ?? {}) as { code?: unknown };
  if (code === "42501")
    return notPossible(
      "The role of this address may not create roles: nothing was granted.",
      "Run it with the DATABASE_URL of a superuser. Workers keep their own.",
    );
  if (code === "42P01")
    return missing(
      "This database has no table client_roles.",
      "A worker of this version creates it when it starts: longhaul worker",
      error,
    );
  return error;
}
