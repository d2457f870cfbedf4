/** Versions of a deployment on a real server, as an operator sets them. */
import type { Client } from "@temporalio/client";
import { eventually } from "./eventually.ts";

/** Once the server has seen their workers. */
export async function makeCurrent(client: Client, deploymentName: string, buildId: string): Promise<void> {
  await eventually(
    `${buildId} becomes current`,
    async () => {
      try {
        await client.workflowService.setWorkerDeploymentCurrentVersion({
          namespace: "default",
          deploymentName,
          buildId,
          version: `${deploymentName}.${buildId}`,
          ignoreMissingTaskQueues: true,
        });
        return true;
      } catch {
        return false;
      }
    },
    60_000,
  );
}

export async function deploymentsOf(client: Client): Promise<string[]> {
  const { workerDeployments } = await client.workflowService.listWorkerDeployments({
    namespace: "default",
    pageSize: 100,
  });
  return (workerDeployments ?? []).map(({ name }) => name ?? "");
}
