/** Which values of an environment are secrets. Pure: the environment is handed in. */

const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;

/** The values of every variable whose name says so, and the passwords inside addresses. */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  const secrets = new Set<string>();
  for (const [name, value] of Object.entries(environment)) {
    if (!value) continue;
    if (SECRET_NAME.test(name)) secrets.add(value);
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
