/** An authorization server for tests, in front of an MCP server on this machine: its logins need no person. */
import { createServer, request as forward } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "./listen.ts";

export interface LoginServer {
  /** Of the MCP server behind it. */
  readonly url: string;
  /** Grants, in order. */
  readonly grants: string[];
  /** The valid token, and the lifetime of new ones in seconds. */
  token: string;
  expiresIn: number;
}

export async function startLoginServer(behind: string): Promise<LoginServer> {
  let count = 0;
  let refresh = "";
  const state: LoginServer = { url: "", grants: [], token: "", expiresIn: 3_600 };
  const http = createServer((request, answer) => {
    const origin = `http://127.0.0.1:${port}`;
    const { pathname, searchParams } = new URL(request.url ?? "/", origin);
    const json = (body: object, status = 200) =>
      answer.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    void (async () => {
      if (pathname.startsWith("/.well-known/oauth-protected-resource"))
        return json({ resource: state.url, authorization_servers: [origin] });
      if (pathname.startsWith("/.well-known/"))
        return json({
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
        });
      if (pathname === "/register")
        return json({ ...(JSON.parse(await text(request)) as object), client_id: "us" }, 201);
      if (pathname === "/authorize") {
        const back = new URL(searchParams.get("redirect_uri") ?? "");
        back.search = new URLSearchParams({
          code: "the-code",
          state: searchParams.get("state") ?? "",
        }).toString();
        return answer.writeHead(302, { Location: back.toString() }).end();
      }
      if (pathname === "/token") {
        const form = new URLSearchParams(await text(request));
        const grant = form.get("grant_type") ?? "";
        const isGood =
          grant === "authorization_code"
            ? form.get("code") === "the-code"
            : form.get("refresh_token") === refresh;
        if (!isGood) return json({ error: "invalid_grant" }, 400);
        state.grants.push(grant);
        count += 1;
        // Each refresh revokes the token before: two at once would end the login.
        refresh = `refresh-token-${count}`;
        state.token = `access-token-${count}`;
        return json({
          access_token: state.token,
          refresh_token: refresh,
          token_type: "Bearer",
          expires_in: state.expiresIn,
        });
      }
      if (request.headers.authorization !== `Bearer ${state.token}` || state.token === "")
        return answer
          .writeHead(401, {
            "WWW-Authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
          })
          .end();
      const { method, headers } = request;
      const passed = forward(behind, { method: method ?? "GET", headers }, (inner) => {
        answer.writeHead(inner.statusCode ?? 500, inner.headers);
        inner.pipe(answer);
      });
      passed.on("error", () => answer.destroy());
      return request.pipe(passed);
    })();
  });
  const port = await listen(http);
  return Object.assign(state, { url: `http://127.0.0.1:${port}/mcp` });
}
