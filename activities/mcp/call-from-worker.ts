/** A call to a server over HTTP, or to one of the worker's own programs. */
import type { Client } from "@modelcontextprotocol/client";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import { unknownEnd, withNotice } from "./call-outcome.ts";
import { converse } from "./converse.ts";
import type { Connections } from "./connections.ts";
import type { McpCall } from "./mcp.ts";
import { reasonOf } from "./mcp-failure.ts";
import { isListDue, listTools } from "./protocol-client.ts";

const SENT = "sent";

/**
 * A call that a lost attempt may have sent is not sent again, unless it is repeatable. A server of the older revisions that has
 * forgotten our session refuses the call, which is then sent again in a new session.
 */
export async function callFromWorker(
  connections: Connections,
  call: McpCall,
  context: ToolContext,
): Promise<ToolResult> {
  const { server, isRepeatable, state, task } = call;
  const { signal } = context;
  if (state.sent === SENT && task === undefined && !isRepeatable)
    return unknownEnd(call, "the worker that made it was lost before the answer was stored");
  const isRestarted = server.settings.where === "worker" && !connections.has(server);
  let isConnected = false;
  const exchange = <T>(body: (client: Client) => Promise<T>): Promise<T> =>
    connections.use(
      server,
      signal,
      (client) => {
        isConnected = true;
        lookAtList(client, call);
        return body(client);
      },
      call.onReconnected,
    );
  const result = await converse(call, context, {
    mark: isRepeatable ? undefined : SENT,
    exchange: (_name, body) => exchange(body),
    request: exchange,
    // No server received the request.
    isUnsent: (error) => !isConnected || /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(reasonOf(error)),
  });
  return isRestarted && isConnected ? withNotice(server.name, result) : result;
}

/** In parallel with the call, which does not wait for it. */
function lookAtList(client: Client, { server, onListed }: McpCall): void {
  if (!isListDue(client)) return;
  const options = { timeout: server.settings.timeout, signal: AbortSignal.timeout(server.settings.timeout) };
  listTools(client, options)
    // A list that is not whole says nothing about what is missing.
    .then(async (listed) => (listed.isPartial === true ? undefined : onListed(listed)))
    .catch(() => undefined);
}
