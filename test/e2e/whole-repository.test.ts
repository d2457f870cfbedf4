/** A session on a repository whose files a save would leave out by name or size: they are delivered as they were. */
import { randomBytes } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { LIMITS } from "../../activities/workspace/save-limits.ts";
import { useAgent } from "../support/agent-harness.ts";
import { sessionRow } from "../support/client-services.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { withoutLayers } from "../support/without-layers.ts";

const agent = useAgent();

const ODD = {
  "node_modules/dep/index.js": "1\n",
  "lib/__pycache__/x.pyc": "2\n",
  ".venv/x": "3\n",
  "assets/big.bin": "B".repeat(70 * 2 ** 20),
};

it("resumed with its saved files, it removes none that Git tracks, by name or by size", async () => {
  const place = makeRemote({ "README.md": "# Here\n", ".gitignore": "node_modules\n", ...ODD });
  const session = await agent.start(
    scriptedModel()
      .calls("bash", { command: "echo one > one; git add one; git commit -qm One" })
      .says("One.")
      .calls("bash", {
        command:
          "git status --porcelain; wc -c < assets/big.bin; echo two > two; git add -A; echo three > three",
      })
      .says("Two."),
    { config: onRepository(place.url) },
  );
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  expect(await (await session.resume("Go on.", "on")).result()).toMatchObject({ delivery: "done" });
  const branch = `longhaul/${session.id}`;
  expect(gitIn(place.folder, "diff", "--name-status", "main", branch)).toBe("A\tone\nA\tthree\nA\ttwo");
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe(String(70 * 2 ** 20));
  await checkSession(agent, session);
});

it("without layers, whose history is too large for a save, is refused with the way to start it", async () => {
  withoutLayers(agent.deps, "invalid argument");
  const { bytes } = LIMITS;
  onTestFinished(() => void (LIMITS.bytes = bytes));
  LIMITS.bytes = 200_000;
  const place = makeRemote({ "README.md": "# Here\n" });
  // What no compression makes smaller; the newest commit has it no more.
  place.commit("main", { "big.bin": randomBytes(300_000).toString("base64") });
  const newest = place.commit("main", { "big.bin": "small\n" });
  const refused = await agent.start(scriptedModel().says("Never."), { config: onRepository(place.url) });
  await expect(refused.result()).rejects.toThrow();
  expect(await sessionRow(agent, refused.id)).toMatchObject({
    status: "failed",
    error: {
      type: "RepositoryUnavailable",
      message: expect.stringMatching(
        /^The history of file:.* is larger than a save of the workspace .*git\.depth: 1/,
      ) as string,
    },
  });
  expect(refused.model.requests).toEqual([]);
  expect(gitIn(place.folder, "branch", "--format=%(refname:short)")).toBe("main");

  const shallow = await agent.start(
    scriptedModel()
      .calls("bash", { command: "ls; git rev-parse HEAD; echo one > one" })
      .says("One.")
      .calls("bash", { command: "git status --porcelain; git log --format=%s -1" })
      .says("Two."),
    { config: onRepository(place.url, { depth: 1 }) },
  );
  expect(await shallow.result()).toMatchObject({ status: "completed", delivery: "done" });
  expect(await resultTexts(agent.database.store, shallow.id)).toEqual([expect.stringContaining(newest)]);
  expect(await (await shallow.resume("Go on.", "on")).result()).toMatchObject({ status: "completed" });
  expect(gitIn(place.folder, "diff", "--name-status", "main", `longhaul/${shallow.id}`)).toBe("A\tone");
  await checkSession(agent, shallow);
});
