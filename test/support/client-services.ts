/** What the client's verbs work with, over the services of a test's agent. */
import type { Services } from "../../client/connect/connection.ts";
import { requireSession } from "../../client/sessions/with-session.ts";
import type { AgentHarness } from "./agent-harness.ts";

export function clientServices(agent: AgentHarness): Services {
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
