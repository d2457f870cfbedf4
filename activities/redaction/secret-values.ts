/** Which values of an environment are secrets. Pure: the environment is handed in. */

/** The end of a name in one piece: `PGPASSWORD`, `APIKEY`. */
const SECRET_END = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$/i;
/** A word of a name, wherever it stands: `API_KEY_1`, `CLIENT_KEY_DATA`, `GH_PAT`, `sessionCookie`. */
const SECRET_WORD =
  /^(KEY|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|PASS|PWD|PAT|CREDENTIALS?|CREDS?|COOKIES?|DSN|AUTH|AUTHORIZATION|BEARER|SIG|SIGNATURE|JWT)\d*$/i;
/** The last word of a name whose value only tells something about a secret. */
const NO_VALUE =
  /^(FILE|FILENAME|PATH|DIR|FOLDER|HOME|SOCK|SOCKET|URL|URI|HOST|HOSTS|ENDPOINT|ID|NAME|NAMES|USER|USERNAME|TYPE|KIND|MODE|METHOD|PROVIDER|LENGTH|SIZE|COUNT|LIMIT|MAX|MIN|TTL|EXPIRY|EXPIRES|TIMEOUT|SECONDS|MS|ENABLED|DISABLED|HEADER|PREFIX|SUFFIX|ALGORITHM|FORMAT|VERSION|RING|STORE|COMMAND|CMD|ENV|LOGFILE)$/i;

/** Whether a variable, parameter or field of this name holds a secret. */
export function isSecretName(name: string): boolean {
  // The shell's working folders.
  if (/^(OLD)?PWD$/.test(name)) return false;
  if (SECRET_END.test(name)) return true;
  const nameWords = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").split(/[^A-Za-z0-9]+/);
  return nameWords.some((word) => SECRET_WORD.test(word)) && !NO_VALUE.test(nameWords.at(-1) ?? "");
}

/** The values of every variable whose name says so, and the secrets inside of addresses, settings and JSON. */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  const secrets = new Set<string>();
  for (const [name, value] of Object.entries(environment)) {
    if (!value) continue;
    if (isSecretName(name)) secrets.add(value);
    // Such addresses contain a token in their path.
    if (name === "LONGHAUL_NOTIFY_URL" || /(^|_)WEBHOOKS?(_UR[IL])?$/i.test(name)) secrets.add(value);
    // Also the token of a single host; a user's name may be in front.
    if (name.startsWith("LONGHAUL_GIT_TOKEN")) secrets.add(value).add(value.slice(value.indexOf(":") + 1));
    if (name === "LONGHAUL_CODEC_KEYS")
      for (const entry of value.split(",")) secrets.add(entry.slice(entry.indexOf(":") + 1).trim());
    if (name.startsWith("LONGHAUL_MCP_") || name.startsWith("LONGHAUL_KEY_")) secrets.add(value);
    if (name === "LONGHAUL_SERVE_TOKENS")
      for (const pair of value.split(",")) secrets.add(pair.slice(pair.indexOf("=") + 1).trim());
    if (/^OTEL_EXPORTER_OTLP_([A-Z]+_)?HEADERS$/.test(name))
      for (const header of headersIn(value)) secrets.add(header);
    for (const secret of [...passwordsIn(value), ...assignedIn(value), ...fieldsIn(value), ...netrcIn(value)])
      secrets.add(secret);
  }
  return [...secrets];
}

/** The values of `name=value,name=value`, as they are written and as they are sent. */
function headersIn(list: string): string[] {
  return list.split(",").flatMap((pair) => {
    const text = pair.slice(pair.indexOf("=") + 1).trim();
    return [text, decoded(text)].flatMap((value) => [value, value.replace(/^(Bearer|Basic) /i, "")]);
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Shorter names of users are no tokens. */
const MIN_LONE_TOKEN = 20;

/**
 * Of addresses, also of several. A password that repeats the user's name (`postgres:postgres`) hides nothing, and masking it
 * would remove a word from every text.
 */
function passwordsIn(value: string): string[] {
  const addresses = [...value.matchAll(/\b[a-z][a-z0-9+.-]{0,30}:\/\/([^/?#\s]{0,4000})@/gi)].map(
    ([, part = ""]) => part,
  );
  // Go's form for MySQL has no scheme.
  const [, plain] = /^([^\s:/@]+:[^\s/@]+)@[a-z]+\(/.exec(value) ?? [];
  return [...addresses, ...(plain === undefined ? [] : [plain])].flatMap((credentials) => {
    const colon = credentials.indexOf(":");
    if (colon === -1) return credentials.length < MIN_LONE_TOKEN ? [] : [credentials, decoded(credentials)];
    const password = credentials.slice(colon + 1);
    return password === credentials.slice(0, colon) ? [] : [password, decoded(password)];
  });
}

/** A name that something is assigned to. One within another's value counts too: `https://host/?token=…` begins like `https: …`. */
const ASSIGNED = /(?<=^|[?&;,#\s])([\w.-]{2,60})\s?[=:]\s?|(?<=[/:=])([\w.-]{2,60})\s?=\s?/g;
const ASSIGNED_VALUE = /(?:(?:Bearer|Basic|Token) )?(?:'([^']*)'|"([^"]*)"|([^&;,\s#]+))/y;

/** Of an address's parameters, of lists such as `host=db password='…'` and `Server=db;Pwd=…`, of headers and of YAML. */
function assignedIn(value: string): string[] {
  return [...value.matchAll(ASSIGNED)].flatMap((match) => {
    if (!isSecretName(match[1] ?? match[2] ?? "")) return [];
    ASSIGNED_VALUE.lastIndex = match.index + match[0].length;
    const [, single, double, bare] = ASSIGNED_VALUE.exec(value) ?? [];
    const secret = single ?? double ?? bare ?? "";
    return [secret, decoded(secret)];
  });
}

/** Of what `~/.netrc` says. */
const netrcIn = (value: string): string[] =>
  /\b(machine|default)\b/.test(value)
    ? [...value.matchAll(/\bpassword\s+(\S{8,})/g)].map(([, password = ""]) => password)
    : [];

/** Of JSON: what a cloud's or a registry's credentials are written in. */
function fieldsIn(value: string): string[] {
  if (!value.trimStart().startsWith("{")) return [];
  const values: string[] = [];
  try {
    JSON.parse(value, (name, field: unknown) => {
      if (typeof field === "string" && isSecretName(name)) values.push(field);
      return field;
    });
  } catch {
    // It is no JSON.
  }
  return values;
}
