/**
 * Tokens of Amazon, Google and Microsoft, by their own libraries, and whose they are. A short-lived token of Bedrock is a request
 * signed in advance that nobody ever sends: its base64 is the token.
 * Source: docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html; compared with the official generator in the tests.
 */
import { createHash, createHmac } from "node:crypto";
import type { Auth } from "../../config/operator-policy.ts";
import type { Environment } from "../../config/providers.ts";
import { isJsonObject, type JsonObject } from "../../text/json.ts";
import { bodyText } from "../../process/bounded-body.ts";
import { createOutgoing } from "../../process/outgoing-fetch.ts";
import { optionalPackage, TokenTrouble, type Token, type TokenSource } from "./token-source.ts";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

/** The most that the service takes. A token ends with its credentials too. */
const MAX_LIFE_S = 43_200;
/** How long a key that never ends is kept before the environment is read again; it costs nothing. */
const KEY_LIFE_MS = 3_600_000;
const CREDENTIALS_PACKAGE = "@aws-sdk/credential-provider-node";

export interface AwsOptions {
  readonly region: string;
  readonly profile?: string | undefined;
  /** AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, or AWS_BEARER_TOKEN_BEDROCK. */
  readonly environment: Environment;
  readonly now: () => number;
  readonly load: (name: string) => Promise<unknown>;
}

export function bedrockTokens(options: AwsOptions): TokenSource {
  return async () => {
    const { environment, profile, region } = options;
    const now = options.now();
    const key = environment["AWS_BEARER_TOKEN_BEDROCK"];
    if (key && profile === undefined) return { token: key, expiresAt: now + KEY_LIFE_MS };
    return bedrockToken(await credentialsOf(options), region, now);
  };
}

/** The environment's, else what Amazon's own package finds: profiles, SSO, containers, instances, web identity. */
async function credentialsOf({ environment, profile, load }: AwsOptions): Promise<AwsCredentials> {
  const accessKeyId = environment["AWS_ACCESS_KEY_ID"];
  const secretAccessKey = environment["AWS_SECRET_ACCESS_KEY"];
  if (profile === undefined && accessKeyId && secretAccessKey)
    return { accessKeyId, secretAccessKey, sessionToken: environment["AWS_SESSION_TOKEN"] || undefined };
  const { defaultProvider } = await optionalPackage<ProviderNode>(CREDENTIALS_PACKAGE, load);
  // Made anew and without a cache, so that a renewed sign-on on disk is used.
  return defaultProvider({ ignoreCache: true, ...(profile === undefined ? {} : { profile }) })();
}

interface ProviderNode {
  readonly defaultProvider: (init: object) => () => Promise<AwsCredentials>;
}

/** @throws TokenTrouble if the credentials have ended */
export function bedrockToken(credentials: AwsCredentials, region: string, now: number): Token {
  const endsAt = credentials.expiration?.getTime() ?? Infinity;
  if (endsAt <= now) throw new TokenTrouble("the credentials have expired");
  const url = presigned(credentials, {
    host: "bedrock.amazonaws.com",
    service: "bedrock",
    query: { Action: "CallWithBearerToken" },
    method: "POST",
    region,
    now,
    lifeS: MAX_LIFE_S,
  });
  return {
    token: `bedrock-api-key-${Buffer.from(`${url}&Version=1`).toString("base64")}`,
    expiresAt: Math.min(now + MAX_LIFE_S * 1_000, endsAt),
  };
}

interface Signed {
  readonly method: "GET" | "POST";
  readonly host: string;
  readonly service: string;
  readonly region: string;
  readonly query: Readonly<Record<string, string>>;
  readonly now: number;
  readonly lifeS: number;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const escaped = (text: string) =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Signature version 4 in the query, without the scheme. Source: Amazon's "Create a signed request". */
function presigned(credentials: AwsCredentials, signed: Signed): string {
  const { method, host, service, region, query, now, lifeS } = signed;
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const time = new Date(now).toISOString().replaceAll(/[:-]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const scope = `${day}/${region}/${service}/aws4_request`;
  const fields = {
    ...query,
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    // The official generator signs it, whatever Amazon's text says of the services that do not.
    ...(sessionToken === undefined ? {} : { "X-Amz-Security-Token": sessionToken }),
    "X-Amz-Credential": `${accessKeyId}/${scope}`,
    "X-Amz-Date": time,
    "X-Amz-Expires": String(lifeS),
    "X-Amz-SignedHeaders": "host",
  };
  const canonical = queryOf(fields);
  const request = [method, "/", canonical, `host:${host}\n`, "host", sha256("")].join("\n");
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(request)].join("\n");
  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  return `${host}/?${queryOf({ ...fields, "X-Amz-Signature": hmac(key, text).toString("hex") })}`;
}

const queryOf = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields)
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .toSorted()
    .join("&");

/** The address that says whose credentials these are; it may be asked by everyone. */
function identityUrl(credentials: AwsCredentials, region: string, now: number): string {
  const url = presigned(credentials, {
    host: `sts.${region}.amazonaws.com`,
    service: "sts",
    query: { Action: "GetCallerIdentity", Version: "2011-06-15" },
    method: "GET",
    region,
    now,
    lifeS: 60,
  });
  return `https://${url}`;
}

const GOOGLE_PACKAGE = "google-auth-library";
const GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform";
/** For a token whose end the library does not say: Google's are good for an hour. */
const GOOGLE_LIFE_MS = 3_000_000;

interface GoogleLibrary {
  readonly GoogleAuth: new (options: object) => {
    getClient(): Promise<{
      getAccessToken(): Promise<{ readonly token?: string | null | undefined }>;
      readonly credentials?: { readonly expiry_date?: number | null | undefined };
    }>;
    getCredentials(): Promise<{ readonly client_email?: string | undefined }>;
  };
}

interface GoogleOptions {
  readonly now: () => number;
  readonly load: (name: string) => Promise<unknown>;
}

/** Made anew each time, so that renewed credentials on disk are used. */
const authOf = async ({ load }: GoogleOptions) =>
  new (await optionalPackage<GoogleLibrary>(GOOGLE_PACKAGE, load)).GoogleAuth({ scopes: [GOOGLE_SCOPE] });

/** Access tokens of Google Cloud: application default credentials, as Google's own library finds them. */
export function googleTokens(options: GoogleOptions): TokenSource {
  return async () => {
    const client = await (await authOf(options)).getClient();
    const { token } = await client.getAccessToken();
    if (!token) throw new TokenTrouble("Google's library returned none");
    return { token, expiresAt: client.credentials?.expiry_date ?? options.now() + GOOGLE_LIFE_MS };
  };
}

/** The service account, if it is one. */
async function googleAccount(options: GoogleOptions): Promise<string | undefined> {
  return (await (await authOf(options)).getCredentials()).client_email;
}

const AZURE_PACKAGE = "@azure/identity";
/** Source: learn.microsoft.com/azure/foundry/openai/api-version-lifecycle. */
const AZURE_SCOPE = "https://cognitiveservices.azure.com/.default";

interface AzureLibrary {
  readonly DefaultAzureCredential: new () => {
    getToken(
      scope: string,
      options: object,
    ): Promise<{ readonly token: string; readonly expiresOnTimestamp: number } | null>;
  };
}

/**
 * Entra's tokens for Azure OpenAI: managed identity, workload identity, environment, Azure's command line. The credential is made
 * anew each time, so that a renewed sign-on is used.
 */
export function entraTokens(
  load: (name: string) => Promise<unknown>,
  scope: string = AZURE_SCOPE,
): TokenSource {
  return async (abortSignal) => {
    const { DefaultAzureCredential } = await optionalPackage<AzureLibrary>(AZURE_PACKAGE, load);
    const token = await new DefaultAzureCredential().getToken(scope, { abortSignal });
    if (token === null) throw new TokenTrouble("Entra returned none");
    return { token: token.token, expiresAt: token.expiresOnTimestamp };
  };
}

interface AskedIdentity {
  readonly auth: Auth;
  readonly region: string | undefined;
  readonly token: string;
  readonly environment: Environment;
  readonly now: () => number;
  readonly load: (name: string) => Promise<unknown>;
}

/** Says whose tokens a source gives, for `doctor`: never the token itself. */
export async function describeIdentity(identity: AskedIdentity, signal: AbortSignal): Promise<string> {
  switch (identity.auth.kind) {
    case "aws-bedrock":
      return awsCaller(identity, identity.auth.profile, signal);
    case "google":
      return (await googleAccount(identity)) ?? "a person's own credentials";
    case "azure":
    case "command":
      return claimsIn(identity.token) ?? "its token names nobody";
  }
}

async function awsCaller(
  identity: AskedIdentity,
  profile: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { environment, region = "", now } = identity;
  if (environment["AWS_BEARER_TOKEN_BEDROCK"] && profile === undefined)
    return "the key in AWS_BEARER_TOKEN_BEDROCK";
  const credentials = await credentialsOf({ ...identity, region, profile });
  const outgoing = await createOutgoing();
  try {
    const response = await outgoing.fetch(identityUrl(credentials, region, now()), { signal });
    const [, arn] = /<Arn>([^<]{1,200})<\/Arn>/.exec(await bodyText(response)) ?? [];
    if (arn !== undefined) return arn;
  } catch {
    // STS is elsewhere or closed to this machine; the key's name says less, and is public.
  } finally {
    await outgoing.close();
  }
  return `the access key ${credentials.accessKeyId.slice(0, 4)}…${credentials.accessKeyId.slice(-4)}`;
}

/** The names in a token that is a JWT: they are no secret, and nothing is believed because of them. */
function claimsIn(token: string): string | undefined {
  const [, middle] = token.split(".");
  if (middle === undefined) return undefined;
  const claims = claimsOf(Buffer.from(middle, "base64url").toString("utf8"));
  const named = ["upn", "unique_name", "email", "appid", "sub", "tid"].flatMap((name) =>
    typeof claims[name] === "string"
      ? [`${name === "tid" ? "tenant" : name} ${claims[name].slice(0, 100)}`]
      : [],
  );
  return named.length === 0 ? undefined : named.join(", ");
}

function claimsOf(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
