/** Refuses invalid addresses of services before anything is tried. */
import { usageError } from "../console/errors.ts";
import { settingOf } from "./services.ts";

/** The value is not printed: it may contain a password. @throws ClientError (usage) */
export function checkAddresses(): void {
  const url = settingOf("DATABASE_URL");
  if (url === undefined || /^(?:postgres(?:ql)?|socket):|^\//.test(url)) return;
  throw usageError(
    "DATABASE_URL is not an address of a Postgres server.",
    "Expected postgres://USER:PASSWORD@HOST:PORT/NAME; unset it to use a server that longhaul up brings up.",
  );
}
