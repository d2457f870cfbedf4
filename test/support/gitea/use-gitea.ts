import { afterAll, beforeAll, describe, inject } from "vitest";
import { startGitea, type GiteaServer } from "./server.ts";

/** Describes what a real Gitea does, one for the file; says why it is skipped where there is none. */
export function describeOnGitea(name: string, tests: (gitea: () => GiteaServer) => void): void {
  const found = inject("gitea");
  if (!found.ok) process.stdout.write(`Skipped: ${name}, since ${found.why}.\n`);
  describe.skipIf(!found.ok)(name, () => {
    let server: GiteaServer | undefined;
    beforeAll(async () => {
      if (found.ok) server = await startGitea(found);
    });
    afterAll(() => server?.close());
    tests(() => {
      if (server === undefined) throw new Error("Gitea has not started.");
      return server;
    });
  });
}
