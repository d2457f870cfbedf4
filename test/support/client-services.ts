/** The services that the client's commands use, as a test's agent or a soak has them. */
import type { Output } from "../../client/console/output.ts";
import type { Services } from "../../client/connect/connection.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { sendGuidance } from "../../client/sessions/guidance.ts";
import { requireSession } from "../../client/sessions/with-session.ts";
import type { Store } from "../../activities/store/db.ts";
import type { AgentHarness } from "./agent-harness.ts";

export function clientServices(
  agent: Pick<AgentHarness, "client" | "taskQueue"> & { readonly database: { readonly store: Store } },
): Services {
  return {
    store: agent.database.store,
    temporal: {
      client: () => Promise.resolve(agent.client),
      address: "test",
      namespace: agent.client.options.namespace,
    },
    taskQueue: agent.taskQueue,
    uiUrl: () => undefined,
    close: () => Promise.resolve(),
  };
}

export const sessionRow = (agent: AgentHarness, id: string) =>
  requireSession({ store: agent.database.store }, id);

/** As `say` does. */
export const say = async (
  agent: AgentHarness,
  sessionId: string,
  message: { readonly id: string; readonly text: string },
  services: Services = clientServices(agent),
) => sendGuidance(services, await sessionRow(agent, sessionId), { ...message, attachments: [] });

/** As `retry` does. */
export const retry = async (
  agent: AgentHarness,
  sessionId: string,
  fromStep?: number,
  { dropMessages = false } = {},
) => retrySession(clientServices(agent), await sessionRow(agent, sessionId), { fromStep, dropMessages });

/** An output that keeps results and shows nothing. */
export function quietOutput(results: string[]): Output {
  const nothing = () => undefined;
  return {
    result: (text) => void results.push(text),
    note: nothing,
    show: nothing,
    draw: nothing,
    hints: (text) => text,
    json: nothing,
    style: (_look, text) => text,
    columns: 80,
    terminal: undefined,
    isLive: false,
    isRich: false,
    isTerminal: false,
    isRead: false,
    sameScreen: false,
  };
}
