/**
 * A GitHub App with GitHub's checks: the signature and times of its JWT, where it is installed, tokens that expire. Source:
 * docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app and docs.github.com/rest/apps/apps.
 */
import { generateKeyPairSync, randomBytes, verify } from "node:crypto";
import type { Answer, Fields } from "./fake-forge.ts";

const INSTALLATION = 7;
const TOKEN_MS = 3_600_000;
const MAX_SIGNED_S = 600;

interface Issued {
  readonly value: string;
  readonly repositories: readonly string[];
  readonly expiresAtMs: number;
}

export interface FakeGitHubApp {
  readonly id: string;
  /** PEM, as GitHub gives it (PKCS#1). */
  readonly key: string;
  /** Every token that was issued, the oldest first. */
  readonly issued: Issued[];
  /** Repositories by full name if it is installed. */
  readonly installedOn: string[];
  /** Whether a token was issued and has not expired. */
  readonly takes: (token: string) => boolean;
  /** @returns undefined for requests that are not for the App */
  answer(method: string, path: string, bearer: string, fields: Fields): Answer | undefined;
}

const refusal = (status: number, message: string): Answer => ({ status, body: { message } });

/** @param now the forge's clock */
export function createFakeGitHubApp(now: () => Date): FakeGitHubApp {
  const id = "314159";
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const app: FakeGitHubApp = {
    id,
    key: String(privateKey.export({ type: "pkcs1", format: "pem" })),
    issued: [],
    installedOn: ["acme/app"],
    takes: (token) =>
      app.issued.some(({ value, expiresAtMs }) => value === token && expiresAtMs > now().getTime()),
    answer(method, path, bearer, fields) {
      const [, repository] = /^\/repos\/([^/]+\/[^/]+)\/installation$/.exec(path) ?? [];
      const isTokens = path === `/app/installations/${INSTALLATION}/access_tokens`;
      if (repository === undefined && !isTokens) return undefined;
      const wrong = wrongWith(bearer);
      if (wrong !== undefined) return refusal(401, wrong);
      if (repository !== undefined) {
        if (method !== "GET" || !app.installedOn.includes(repository)) return refusal(404, "Not Found");
        return { status: 200, body: { id: INSTALLATION, app_id: Number(id) } };
      }
      if (method !== "POST") return refusal(404, "Not Found");
      const repositories = (fields["repositories"] ?? []) as string[];
      if (!repositories.every((name) => app.installedOn.includes(`acme/${name}`)))
        return refusal(422, "There is at least one repository that does not exist or is not accessible");
      // Whole seconds, as GitHub writes them.
      const expiresAtMs = Math.floor((now().getTime() + TOKEN_MS) / 1_000) * 1_000;
      const value = `ghs_${randomBytes(27).toString("base64url").replaceAll(/[-_]/g, "x")}`;
      app.issued.push({ value, repositories, expiresAtMs });
      const expires_at = new Date(expiresAtMs).toISOString().replace(".000Z", "Z");
      return { status: 201, body: { token: value, expires_at, repository_selection: "selected" } };
    },
  };

  function wrongWith(jwt: string): string | undefined {
    const [head = "", body = "", signature = "", ...more] = jwt.split(".");
    if (signature === "" || more.length > 0) return "A JSON web token could not be decoded";
    const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString()) as Fields;
    if (read(head)["alg"] !== "RS256") return "A JSON web token could not be decoded";
    const isSigned = verify(
      "RSA-SHA256",
      Buffer.from(`${head}.${body}`),
      publicKey,
      Buffer.from(signature, "base64url"),
    );
    if (!isSigned) return "A JSON web token could not be decoded";
    const claims = read(body) as { iat: number; exp: number; iss: string };
    const seconds = now().getTime() / 1_000;
    if (claims.iss !== id) return "Integration not found";
    if (!Number.isInteger(claims.iat) || claims.iat > seconds)
      return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
    if (!Number.isInteger(claims.exp) || claims.exp <= seconds)
      return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
    if (claims.exp > seconds + MAX_SIGNED_S)
      return "'Expiration time' claim ('exp') is too far in the future";
    return undefined;
  }

  return app;
}
