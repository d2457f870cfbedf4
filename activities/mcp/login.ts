/** A person's login to an MCP server: the authorization code flow, in a browser that the person opens. */
import { randomBytes } from "node:crypto";
import {
  auth,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
} from "@modelcontextprotocol/client";
import { createOutgoing } from "../process/outgoing-fetch.ts";
import type { Access } from "./logins.ts";
import { McpFailure, reasonOf } from "./mcp-failure.ts";

export interface Browser {
  /** The address that the browser is redirected to afterwards. */
  readonly redirectUrl: string;
  /** Shows the person the address to open. */
  readonly open: (address: URL) => void;
  /** The parameters of that redirect. */
  readonly answer: () => Promise<URLSearchParams>;
}

/** @throws McpFailure in words for people */
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
    saveTokens: (given) => void (tokens = given),
    redirectToAuthorization: (address) => browser.open(address),
    saveCodeVerifier: (text) => void (verifier = text),
    codeVerifier: () => verifier,
    // The code goes back to the server that was asked for it.
    discoveryState: () => info,
    saveDiscoveryState: (found) => void (info = found),
  };
  const scope = server.scopes?.join(" ");
  const { fetch, close } = await createOutgoing();
  const options = { serverUrl: server.url, fetchFn: fetch, ...(scope === undefined ? {} : { scope }) };
  try {
    await auth(provider, options);
    const answer = await browser.answer();
    if (answer.get("state") !== state) throw new McpFailure("the browser came back from another login");
    const authorizationCode = answer.get("code");
    if (authorizationCode === null)
      throw new McpFailure(`the login was refused (${answer.get("error") ?? "no code"})`);
    const iss = answer.get("iss");
    await auth(provider, { ...options, authorizationCode, ...(iss === null ? {} : { iss }) });
    if (client === undefined || tokens === undefined || info === undefined)
      throw new McpFailure("the login brought no token");
    const { authorizationServerUrl, authorizationServerMetadata: metadata, resourceMetadata } = info;
    return {
      tokens,
      client,
      authorizationServerUrl,
      ...(metadata === undefined ? {} : { metadata }),
      ...(resourceMetadata === undefined ? {} : { resource: resourceMetadata.resource }),
    };
  } catch (error) {
    throw new McpFailure(reasonOf(error));
  } finally {
    await close();
  }
}
