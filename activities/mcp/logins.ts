/** Access from a person's login: stored sealed in Postgres, refreshed by the first worker that needs it. */
import { createHash } from "node:crypto";
import {
  refreshAuthorization,
  type AuthorizationServerMetadata,
  type AuthProvider,
  type OAuthClientInformationMixed,
  type OAuthTokens,
} from "@modelcontextprotocol/client";
import type { Queryable, Store } from "../store/db.ts";
import {
  lockedCredential,
  readCredential,
  writeCredential,
  type CredentialId,
} from "../store/mcp-credentials.ts";
import { McpFailure } from "./mcp-failure.ts";
import { createSealer } from "./sealed.ts";

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
      let given = "";
      return {
        async token() {
          const { access, isStale } = await read(store.db, id);
          const current = isStale ? await storedRefresh(id, access.tokens.access_token) : access;
          given = current.tokens.access_token;
          return given;
        },
        async onUnauthorized() {
          await storedRefresh(id, given);
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
    ...(metadata === undefined ? {} : { metadata }),
    ...(resource === undefined ? {} : { resource }),
    clientInformation: client,
    refreshToken: tokens.refresh_token,
  }).catch(() => {
    throw ended;
  });
  return { ...access, tokens: { ...tokens, ...fresh } };
}
