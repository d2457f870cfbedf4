/** Removes a session's sandbox whichever installation's it is: of sessions that a test's own workers had. */
import type Dockerode from "dockerode";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { volumeLabels } from "../../activities/sandbox/docker/docker-containers.ts";
import { INSTALLATION_LABEL, sandboxName } from "../../activities/sandbox/docker/profile.ts";

export async function removeBox(docker: Dockerode, sessionId: string): Promise<void> {
  const labels = await volumeLabels(docker, sandboxName(sessionId));
  const installation = async () => labels?.[INSTALLATION_LABEL] ?? "";
  await createDockerHost({ docker, name: "test", installation }).remove(sessionId);
}
