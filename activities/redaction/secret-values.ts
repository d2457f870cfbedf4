/** Which values of an environment are secrets. Pure: the environment is handed in. */

const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;

/** The values of every variable whose name says so, and the passwords inside addresses. */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  const secrets = new Set<string>();
  for (const [name, value] of Object.entries(environment)) {
    if (!value) continue;
    if (SECRET_NAME.test(name)) secrets.add(value);
    // Such addresses hold a token in their path.
    if (name === "LONGHAUL_NOTIFY_URL") secrets.add(value);
    // Of one host, and perhaps with a user's name in front.
    if (name.startsWith("LONGHAUL_GIT_TOKEN")) secrets.add(value).add(value.slice(value.indexOf(":") + 1));
    if (name.startsWith("LONGHAUL_MCP_")) secrets.add(value);
    if (name === "LONGHAUL_SERVE_TOKENS")
      for (const pair of value.split(",")) secrets.add(pair.slice(pair.indexOf("=") + 1).trim());
    for (const password of passwordsIn(value)) secrets.add(password);
  }
  return [...secrets];
}

function passwordsIn(value: string): string[] {
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*?:([^/?#]+)@/i.exec(value)?.[1];
  if (written === undefined) return [];
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
}
