/** A session on a repository whose files a save would leave out by name or size: they are delivered as they were. */
import { expect, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

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
