import { expect, test } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { withMachine } from "../../client/registries/session-registries.ts";
import { registriesAnswer } from "../support/registries-answer.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useAgent } from "../support/agent-harness.ts";
import { file } from "../support/workspace-file.ts";

const agent = useAgent();

/** As the client resolves a person's settings at the start: this machine's registries and certificate authorities. */
const asThisMachine = (config: RunConfig): RunConfig => ({
  ...config,
  sandbox: withMachine({ ...config.sandbox, network: "bridge", memory: "1g" }, process.env, process.cwd())
    .sandbox,
});

/** A project of each kind, with one dependency if its kind has a registry. */
const PROJECTS = [
  file(
    "web/package.json",
    JSON.stringify({ name: "web", type: "module", dependencies: { "is-number": "7.0.0" } }),
  ),
  file(
    "web/server.js",
    'import { createServer } from "node:http";\nimport isNumber from "is-number";\ncreateServer((_, answer) => answer.end(`seven: ${isNumber(7)}`)).listen(8123);\n',
  ),
  file(
    "web/web.test.js",
    'import test from "node:test";\nimport assert from "node:assert";\nimport isNumber from "is-number";\ntest("seven", () => assert.ok(isNumber(7)));\n',
  ),
  file(
    "sums/test_sums.py",
    "import six\n\ndef test_sums():\n    assert six.moves.reduce(int.__add__, [1, 2]) == 3\n",
  ),
  file(
    "c/CMakeLists.txt",
    "cmake_minimum_required(VERSION 3.20)\nproject(seven C)\nenable_testing()\nadd_executable(seven seven.c)\nadd_test(NAME seven COMMAND seven)\n",
  ),
  file("c/seven.c", "int main(void) { return 0; }\n"),
];

test(
  "a session builds and tests a Node, a Python and a C project from this machine's registries",
  { timeout: 300_000 },
  async ({ skip }) => {
    if (!(await registriesAnswer())) return skip("no package registry answers on this machine");
    const seconds = { timeout_seconds: 200 };
    const script = scriptedModel()
      .calls("bash", {
        command:
          "cd web && npm install && node --test && (node server.js & curl -s --retry 9 --retry-connrefused localhost:8123; kill %1)",
        ...seconds,
      })
      .calls("bash", {
        command:
          "cd sums && python -m venv .venv && .venv/bin/pip install --quiet six pytest && .venv/bin/pytest -q",
        ...seconds,
      })
      .calls("bash", {
        command: "cd sums && uv venv -q .uv && uv pip install -q --python .uv six && echo uv did",
        ...seconds,
      })
      .calls("bash", {
        command: "cd c && cmake -B out > log && cmake --build out >> log && ctest --test-dir out",
        ...seconds,
      })
      .calls("bash", { command: "curl -sS http://10.255.255.1:8080/" })
      .says("Done.");
    const session = await agent.start(script, {
      config: asThisMachine,
      workspace: await packWorkspace(PROJECTS),
    });
    expect((await session.result()).status).toBe("completed");
    const [node, python, uv, c, refused] = await resultTexts(agent.database.store, session.id);
    expect(node).toMatch(/pass 1\n[\s\S]*seven: true$/m);
    expect(python).toContain("1 passed");
    expect(uv).toBe("uv did");
    expect(c).toContain("100% tests passed");
    // A firewall's refusal is reported with its reason and the setting that allows it.
    expect(refused).toMatch(
      /firewall refused 10\.255\.255\.1 port 8080.*sandbox\.allow: \[10\.255\.255\.1\]/,
    );
  },
);
