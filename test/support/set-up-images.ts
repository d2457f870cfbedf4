import { afterAll, beforeAll } from "vitest";
import { keptName } from "../../activities/sandbox/docker/set-up-images.ts";
import type { KeptSetUps } from "../../activities/sandbox/sandbox-host.ts";
import type { AgentHarness } from "./agent-harness.ts";

/** After the tests of a file, removes the images that their sessions' set-ups made, and no other file's. */
export function removeSetUpImages(agent: AgentHarness): void {
  const keys = new Set<string>();
  beforeAll(() => {
    const host = agent.deps.sandboxHost as { setUps: KeptSetUps };
    const { setUps } = host;
    host.setUps = {
      ...setUps,
      keep: (spec, key, commit) => setUps.keep(spec, keys.add(key) && key, commit),
      build: (spec, key, ...more) => setUps.build(spec, keys.add(key) && key, ...more),
    };
  });
  afterAll(async () => {
    const names = [...keys].map(keptName);
    // One that failed is not there.
    await Promise.allSettled(names.map((name) => agent.docker.getImage(name).remove({ force: true })));
  });
}
