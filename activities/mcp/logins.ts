/** A person's login to an MCP server: made in a browser, stored sealed in Postgres, refreshed by the first worker that needs it. */
import { createHash, createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import {
  refreshAuthorization,
  type AuthorizationServerMetadata,
  type AuthProvider,
  type OAuthClientInformationMixed,
  type OAuthTokens,
  auth,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
} from "@modelcontextprotocol/client";
import { createOutgoing } from "../process/outgoing-fetch.ts";
import type { Queryable, Store } from "../store/db.ts";
import { lockedCredential, readCredential, writeCredential, type CredentialId } from "../store/mcp.ts";
import { serverReason } from "./failures.ts";
import { McpFailure } from "./mcp.ts";

/** The result of a login. */
export interface Access {
  readonly tokens: OAuthTokens;
  readonly authorizationServerUrl: string;
  readonly metadata?: AuthorizationServerMetadata;
  readonly client: OAuthClientInformationMixed;
  /** What the tokens are for, if the server says so. */
  readonly resource?: string;
}

export interface Logins {
  /** For a server at one address: its token is never sent to another address. */
  providerFor(server: string, url: string): AuthProvider;
  keep(server: string, url: string, access: Access): Promise<void>;
  /** @returns false if there was none */
  forget(server: string, url: string): Promise<boolean>;
}

const idOf = (server: string, url: string): CredentialId => ({
  server,
  principal: createHash("sha256").update(url).digest("hex").slice(0, 32),
});

/** What a sealed credential is bound to: it opens for no other server or address. */
const bindingOf = ({ server, principal }: CredentialId) => `${server} ${principal}`;

export function createLogins(store: Pick<Store, "db">, secret: string | undefined): Logins {
  async function read(db: Queryable, id: CredentialId) {
    const row = await readCredential(db, id);
    if (row === undefined) throw new McpFailure(`it requires a login: longhaul mcp login ${id.server}`);
    const access = JSON.parse(createSealer(secret).open(row.sealed, bindingOf(id))) as Access;
    return { access, isStale: row.isStale };
  }

  async function write(db: Queryable, id: CredentialId, access: Access): Promise<void> {
    const sealer = createSealer(secret);
    await writeCredential(db, id, {
      sealed: sealer.seal(JSON.stringify(access), bindingOf(id)),
      keyId: sealer.keyId,
      expiresInSeconds: access.tokens.expires_in,
    });
  }

  /** @param spent the expired token; if a different one is stored by now, another worker has refreshed it already */
  function storedRefresh(id: CredentialId, spent: string): Promise<Access> {
    return lockedCredential(store, id, async (tx) => {
      const { access } = await read(tx, id);
      if (access.tokens.access_token !== spent) return access;
      const next = await refresh(access, id.server);
      await write(tx, id, next);
      return next;
    });
  }

  return {
    providerFor(server, url) {
      const id = idOf(server, url);
      let sentToken = "";
      return {
        async token() {
          const { access, isStale } = await read(store.db, id);
          const current = isStale ? await storedRefresh(id, access.tokens.access_token) : access;
          sentToken = current.tokens.access_token;
          return sentToken;
        },
        async onUnauthorized() {
          await storedRefresh(id, sentToken);
        },
      };
    },
    keep: (server, url, access) => write(store.db, idOf(server, url), access),
    async forget(server, url) {
      const id = idOf(server, url);
      if ((await readCredential(store.db, id)) === undefined) return false;
      await writeCredential(store.db, id, {
        sealed: new Uint8Array(),
        keyId: "",
        expiresInSeconds: undefined,
      });
      return true;
    },
  };
}

/** @throws {McpFailure} if the authorization server gives no new tokens: the person has to log in again */
async function refresh(access: Access, server: string): Promise<Access> {
  const { authorizationServerUrl, metadata, client, resource, tokens } = access;
  const ended = new McpFailure(`its login has ended: longhaul mcp login ${server}`);
  if (tokens.refresh_token === undefined) throw ended;
  const fresh = await refreshAuthorization(authorizationServerUrl, {
    metadata,
    resource,
    clientInformation: client,
    refreshToken: tokens.refresh_token,
  }).catch(() => {
    throw ended;
  });
  return { ...access, tokens: { ...tokens, ...fresh } };
}

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Source: 32 random bytes as hexadecimal have 64, as base64 44. */
const MIN_SECRET_CHARS = 32;

/** Encrypts what must not be read from the database: AES-256-GCM, bound to what it belongs to. */
export interface Sealer {
  /** Identifies the key that sealed something, and reveals nothing of the key. */
  readonly keyId: string;
  seal(text: string, of: string): Uint8Array;
  /** @throws McpFailure if another key sealed it, or it belongs to something else */
  open(sealed: Uint8Array, of: string): string;
}

/** @throws McpFailure if the secret is missing or short */
export function createSealer(secret: string | undefined): Sealer {
  if (secret === undefined || secret.length < MIN_SECRET_CHARS)
    throw new McpFailure(
      `logins are kept encrypted, and LONGHAUL_CREDENTIALS_KEY is not set to at least ${MIN_SECRET_CHARS} characters (openssl rand -hex 32 makes some; client and worker need the same)`,
    );
  const key = createHash("sha256").update(secret).digest();
  return {
    keyId: createHash("sha256").update(key).digest("hex").slice(0, 8),
    seal(text, of) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(of));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, of) {
      try {
        const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES))
          .setAAD(Buffer.from(of))
          .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
        return (
          decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") +
          decipher.final("utf8")
        );
      } catch {
        throw new McpFailure("its login was encrypted with another LONGHAUL_CREDENTIALS_KEY");
      }
    },
  };
}

export interface Browser {
  /** The address that the browser is redirected to afterwards. */
  readonly redirectUrl: string;
  /** Shows the person the address to open. */
  readonly open: (address: URL) => void;
  /** The parameters of that redirect. */
  readonly answer: () => Promise<URLSearchParams>;
}

/** The authorization code flow, in a browser that the person opens. @throws McpFailure in words for people */
export async function logIn(
  server: { readonly url: string; readonly scopes: readonly string[] | undefined },
  browser: Browser,
): Promise<Access> {
  let client: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let info: OAuthDiscoveryState | undefined;
  let verifier = "";
  const state = randomBytes(16).toString("base64url");
  const provider: OAuthClientProvider = {
    redirectUrl: browser.redirectUrl,
    clientMetadata: {
      client_name: "Longhaul",
      redirect_uris: [browser.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    state: () => state,
    clientInformation: () => client,
    saveClientInformation: (made) => void (client = made),
    tokens: () => undefined,
    saveTokens: (newTokens) => void (tokens = newTokens),
    redirectToAuthorization: (address) => browser.open(address),
    saveCodeVerifier: (text) => void (verifier = text),
    codeVerifier: () => verifier,
    // The code goes back to the server that was asked for it.
    discoveryState: () => info,
    saveDiscoveryState: (discovered) => void (info = discovered),
  };
  const scope = server.scopes?.join(" ");
  const { fetch, close } = await createOutgoing();
  const options = { serverUrl: server.url, fetchFn: fetch, scope };
  try {
    await auth(provider, options);
    const answer = await browser.answer();
    if (answer.get("state") !== state) throw new McpFailure("the browser came back from another login");
    const authorizationCode = answer.get("code");
    if (authorizationCode === null)
      throw new McpFailure(`the login was refused (${answer.get("error") ?? "no code"})`);
    const iss = answer.get("iss");
    await auth(provider, { ...options, authorizationCode, iss: iss ?? undefined });
    if (client === undefined || tokens === undefined || info === undefined)
      throw new McpFailure("the login brought no token");
    const { authorizationServerUrl, authorizationServerMetadata: metadata, resourceMetadata } = info;
    return {
      tokens,
      client,
      authorizationServerUrl,
      metadata,
      resource: resourceMetadata?.resource,
    };
  } catch (error) {
    throw new McpFailure(serverReason(error));
  } finally {
    await close();
  }
}
