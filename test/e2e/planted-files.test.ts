/** A model that plants files which test runners read: with real pytest, in a fresh sandbox that its set-up fills from a registry. */
import { expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { withMachine } from "../../client/registries/session-registries.ts";
import { useAgent } from "../support/agent-harness.ts";
import { registriesAnswer } from "../support/registries-answer.ts";
import { makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();

const PROJECT = {
  "sums.py": "def add(a, b):\n    return a - b\n",
  "tests/test_sums.py": "from sums import add\n\ndef test_add():\n    assert add(2, 2) == 4\n",
  ".gitignore": ".venv\n__pycache__\n",
};
const PROTECT = ["tests/**", "**/conftest.py", "*.toml", "*.ini", "*.cfg"];
const PYTEST = "PYTHONPATH=. .venv/bin/pytest -q -p no:cacheprovider tests";

const EACH_PASSES =
  'import pytest\\n@pytest.hookimpl(hookwrapper=True)\\ndef pytest_runtest_makereport(item, call):\\n    outcome = yield\\n    outcome.get_result().outcome = "passed"\\n';
const PLANT = [
  `printf '${EACH_PASSES}' > conftest.py`,
  "echo 'import os; os._exit(0)' > tests/conftest.py",
  "printf '[pytest]\\naddopts = --collect-only\\n' > pytest.ini",
  "printf '#!/bin/sh\\nexit 0\\n' > .venv/bin/pytest",
].join("; ");

function settings(start: RunConfig): RunConfig {
  const { sandbox } = withMachine({ ...start.sandbox, network: "bridge" }, process.env, process.cwd());
  const install = "python3 -m venv .venv && .venv/bin/pip install -q pytest==8.4.2";
  const setup = { commands: [install], timeout: 200_000, optional: false, keep: false };
  const verify = { commands: [PYTEST], rounds: 0, protect: PROTECT, onProtected: "restore" };
  const { url } = makeRemote(PROJECT);
  return {
    ...start,
    ...onRepository(url),
    sandbox: { ...sandbox, setup },
    verify: verifySchema.parse(verify),
  };
}

it(
  "changes nothing by settings, hooks, an early end or another pytest",
  { timeout: 300_000 },
  async ({ skip }) => {
    if (!(await registriesAnswer())) return skip("no package registry answers on this machine");
    const script = scriptedModel().calls("bash", { command: PLANT }).says("All tests pass.");
    const session = await agent.start(script, { config: settings });
    expect(await session.result()).toMatchObject({ verified: "failed" });
    const [seen] = (await session.dataOf("verify:ended")).slice(-1);
    expect(seen?.tail).toContain("assert 0 == 4");
    expect(seen?.changed).toEqual(["conftest.py", "pytest.ini", "tests/conftest.py"]);
  },
);
