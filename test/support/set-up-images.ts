import { afterAll } from "vitest";
import type { AgentHarness } from "./agent-harness.ts";

/** After the tests of a file, removes the images that their sessions' set-ups made. */
export function removeSetUpImages(agent: AgentHarness): void {
  const begun = Date.now();
  afterAll(async () => {
    const { docker } = agent;
    const images = await docker.listImages({ filters: { label: ["longhaul.setup"] } });
    for (const { RepoTags: [name] = [], Created: at } of images)
      if (name !== undefined && at * 1_000 >= begun - 2_000) await docker.getImage(name).remove();
  });
}
