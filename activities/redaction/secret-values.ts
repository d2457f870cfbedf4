/** Which values of an environment are secrets. Pure: the environment is handed in. */

const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;

/** The values of every variable whose name says so, and the passwords inside addresses. */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  const secrets = new Set<string>();
  for (const [name, value] of Object.entries(environment)) {
    if (!value) continue;
    if (SECRET_NAME.test(name)) secrets.add(value);
    // Such addresses contain a token in their path.
    if (name === "LONGHAUL_NOTIFY_URL") secrets.add(value);
    // Also the token of a single host; a user's name may be in front.
    if (name.startsWith("LONGHAUL_GIT_TOKEN")) secrets.add(value).add(value.slice(value.indexOf(":") + 1));
    if (name === "LONGHAUL_CODEC_KEYS")
      for (const entry of value.split(",")) secrets.add(entry.slice(entry.indexOf(":") + 1).trim());
    if (name.startsWith("LONGHAUL_MCP_")) secrets.add(value);
    if (name === "LONGHAUL_SERVE_TOKENS")
      for (const pair of value.split(",")) secrets.add(pair.slice(pair.indexOf("=") + 1).trim());
    if (/^OTEL_EXPORTER_OTLP_([A-Z]+_)?HEADERS$/.test(name))
      for (const header of headersIn(value)) secrets.add(header);
    for (const password of passwordsIn(value)) secrets.add(password);
  }
  return [...secrets];
}

/** The values of `name=value,name=value`, as they are written and as they are sent. */
function headersIn(list: string): string[] {
  return list.split(",").flatMap((pair) => {
    const written = pair.slice(pair.indexOf("=") + 1).trim();
    return [written, decoded(written)].flatMap((value) => [value, value.replace(/^(Bearer|Basic) /i, "")]);
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A password that repeats the user's name (`postgres:postgres`) hides nothing, and masking it would remove a word from every text. */
function passwordsIn(value: string): string[] {
  const [, user = "", written] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#:]*):([^/?#]+)@/i.exec(value) ?? [];
  return written === undefined || written === user ? [] : [written, decoded(written)];
}
