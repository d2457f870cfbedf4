/** Says whose tokens a source gives, for `doctor`: never the token itself. */
import type { Auth } from "../../config/operator-providers.ts";
import type { Environment } from "../../config/providers.ts";
import { isJsonObject, type JsonObject } from "../../contract/json-object.ts";
import { readText } from "../../process/bounded-body.ts";
import { createOutgoing } from "../../process/outgoing-fetch.ts";
import { credentialsOf, identityUrl } from "./aws.ts";
import { googleAccount } from "./google.ts";

interface Asked {
  readonly auth: Auth;
  readonly region: string | undefined;
  readonly token: string;
  readonly environment: Environment;
  readonly now: () => number;
  readonly load: (name: string) => Promise<unknown>;
}

export async function describeIdentity(asked: Asked, signal: AbortSignal): Promise<string> {
  switch (asked.auth.kind) {
    case "aws-bedrock":
      return awsCaller(asked, asked.auth.profile, signal);
    case "google":
      return (await googleAccount(asked)) ?? "a person's own credentials";
    case "azure":
    case "command":
      return claimsIn(asked.token) ?? "its token names nobody";
  }
}

async function awsCaller(asked: Asked, profile: string | undefined, signal: AbortSignal): Promise<string> {
  const { environment, region = "", now } = asked;
  if (environment["AWS_BEARER_TOKEN_BEDROCK"] && profile === undefined)
    return "the key in AWS_BEARER_TOKEN_BEDROCK";
  const credentials = await credentialsOf({ ...asked, region, profile });
  const outgoing = await createOutgoing();
  try {
    const response = await outgoing.fetch(identityUrl(credentials, region, now()), { signal });
    const [, arn] = /<Arn>([^<]{1,200})<\/Arn>/.exec(await readText(response)) ?? [];
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
  const claims = parsed(Buffer.from(middle, "base64url").toString("utf8"));
  const named = ["upn", "unique_name", "email", "appid", "sub", "tid"].flatMap((name) =>
    typeof claims[name] === "string"
      ? [`${name === "tid" ? "tenant" : name} ${claims[name].slice(0, 100)}`]
      : [],
  );
  return named.length === 0 ? undefined : named.join(", ");
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
