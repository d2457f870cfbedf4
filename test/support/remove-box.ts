/** Removes a session's sandbox whichever installation's it is: of sessions that a test's own workers had. */
import type Dockerode from "dockerode";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { openStore } from "../../activities/store/db.ts";
import { readInstallation } from "../../activities/store/installation.ts";
import { volumeLabels } from "../../activities/sandbox/docker/docker-containers.ts";
import { INSTALLATION_LABEL, sandboxName } from "../../activities/sandbox/docker/profile.ts";

export async function removeBox(docker: Dockerode, sessionId: string): Promise<void> {
  const labels = await volumeLabels(docker, sandboxName(sessionId));
  const installation = async () => labels?.[INSTALLATION_LABEL] ?? "";
  await createDockerHost({ docker, name: "test", installation }).remove(sessionId);
}

/** Removes what all sessions of this database have, as the stopped sandboxes of those that ended. */
export async function removeBoxesOf(docker: Dockerode, databaseUrl: string): Promise<void> {
  const store = openStore({ url: databaseUrl, maxConnections: 1 });
  const host = createDockerHost({
    docker,
    name: "test",
    installation: () => readInstallation(store.db),
  });
  try {
    for (const id of await host.sessions()) await host.remove(id);
  } finally {
    await host.close();
    await store.close();
  }
}
