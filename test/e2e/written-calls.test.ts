import { expect, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";

const agent = useAgent();

it("runs calls that are written otherwise as what they mean, for rules, ledger and history", async () => {
  const script = scriptedModel()
    .answers(
      call("functions.Bash<|channel|>commentary", '{}{"cmd": "echo \'one\ntwo\'", "timeout_seconds": "5",}'),
      call("BASH", "{'cmd': 'rm -rf src', 'description': 'Clean', 'cwd': None}"),
      call("read-file", '{"path": "a "b""}'),
    )
    .answers(call("write_file", '{"path": "a", "content": "x', { cut: true }))
    .with({ finish: "length" })
    .says("Done.");
  const permissions = [{ tool: "bash", match: "rm *", action: "deny" as const }];
  const session = await agent.run(script, { config: { permissions } });
  const results = await resultTexts(agent.database.store, session.id);
  expect(results).toEqual([
    "one\ntwo",
    expect.stringContaining("are not allowed in this session (rm *)"),
    expect.stringMatching(
      /^The arguments of read_file are not valid JSON: line 1, column 14: expected a ","/,
    ),
    expect.stringMatching(
      /^The arguments of write_file are not valid JSON: the answer reached its output limit here: they end after 27 characters/,
    ),
  ]);
  const rows = await callRows(agent.database.store, session.id);
  expect(rows.map(({ name }) => name)).toEqual(["bash", "bash", "read_file", "write_file"]);
  const calls = session.model.requests.at(-1)?.items.filter(({ type }) => type === "call");
  expect(calls).toMatchObject([
    { name: "bash", arguments: JSON.stringify({ command: "echo 'one\ntwo'", timeout_seconds: 5 }) },
    { name: "bash", arguments: JSON.stringify({ command: "rm -rf src" }) },
    { name: "read_file" },
    { name: "write_file" },
  ]);
  await checkSession(agent, session);
});
