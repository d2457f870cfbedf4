/** Commands that fail before the first step: what of it is held against the work. */
import { expect, it } from "vitest";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();

const RED = "test -f mended || { echo 'Error: '$(cat why 2>/dev/null || echo old); exit 1; }";

function session(command: string, commands: readonly string[]) {
  const config = { verify: verifySchema.parse({ commands, rounds: 0, baseline: true }) };
  return agent.start(scriptedModel().calls("bash", { command }).says("Done."), { config });
}

it("tells the model what is red, and does not hold the same failure against it", async () => {
  const same = await session("echo work > file", [RED, "test -f file"]);
  expect(await same.result()).toMatchObject({ status: "completed", verified: "passed" });
  expect(JSON.stringify(same.model.requests[0]?.items)).toContain("fail already");
  const seen = await same.dataOf("verify:ended");
  expect(seen.map(({ outcome }) => outcome)).toEqual(["failed", "failed", "passed", "passed"]);
  expect(seen[2]?.how).toContain("was red before the first step");
}, 120_000);

it("fails work that makes it red in another way", async () => {
  const other = await session("echo new > why", [RED]);
  expect(await other.result()).toMatchObject({ verified: "failed" });
}, 120_000);

it("has no baseline of what could not be run, and says so", async () => {
  const none = await session("true", ["no-such-program"]);
  expect(await none.result()).toMatchObject({ verified: "unavailable" });
  expect(JSON.stringify(none.model.requests[0]?.items)).toContain("These could not be run");
}, 120_000);
