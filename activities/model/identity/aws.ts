/**
 * Tokens of Amazon Bedrock. A short-lived one is a request signed in advance that nobody ever sends: its base64 is the token.
 * Source: docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html; compared with the official generator in the tests.
 */
import { createHash, createHmac } from "node:crypto";
import type { Environment } from "../../config/providers.ts";
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
export async function credentialsOf({ environment, profile, load }: AwsOptions): Promise<AwsCredentials> {
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

/** Pure. @throws TokenTrouble if the credentials have ended */
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
export function identityUrl(credentials: AwsCredentials, region: string, now: number): string {
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
