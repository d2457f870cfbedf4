/** Permissions of a session: rules that ask a person, and a workspace that is read-only before a plan is approved. */
import { expect, it } from "vitest";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { resetToStep } from "../support/reset-run.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { file } from "../support/workspace-file.ts";

const agent = useAgent();

it("runs a call only with a person's approval, again after a reset; a message is none", async () => {
  const touch = (name: string) => call("bash", { command: `touch ${name}; ls` });
  const script = scriptedModel()
    .answers(touch("a"), call("bash", { command: "ls && rm -rf /workspace" }))
    .answers(touch("b"))
    .answers(touch("c"))
    .says("Done.")
    .answers(touch("d"))
    .says("Done without d.");
  const session = await agent.start(script, {
    config: {
      permissions: [
        { tool: "bash", match: "touch *", action: "ask" },
        { tool: "bash", match: "rm *", action: "deny" },
      ],
    },
  });
  const asked = await session.until("question:asked");
  expect(asked.data).toMatchObject({
    id: "s1c0",
    kind: "approval",
    text: "bash: touch a; ls\n(rule: touch *)",
  });
  await untilWaiting(agent.database.store, session);
  // Words alone are not an approval.
  await expect(session.handle.executeUpdate("answerQuestion", { args: [{ text: "yes" }] })).rejects.toThrow();
  await session.handle.signal("answer", { action: "deny", text: "use the file that is there" });
  await session.until("question:asked", ({ data }) => data.id === "s2c0");
  await session.handle.signal("answer", { action: "allow-always", by: "ann" });
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect(await resultTexts(agent.database.store, session.id)).toEqual([
    "A person did not allow this call, and it was not run. They wrote: use the file that is there",
    "Calls like this are not allowed in this session (rm *), and it was not run.",
    "b",
    expect.stringMatching(/^b\nc$/),
  ]);
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s1c0", kind: "approval", status: "declined", answer: "use the file that is there" },
    { id: "s2c0", status: "answered", answer: "allow-always", answeredBy: "ann" },
  ]);

  const runId = await resetToStep(agent.client, session.id, 2);
  await session.until("question:asked", ({ data, epoch }) => data.id === "s2c0" && epoch === 2);
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("guidance", "leave d alone");
  expect(await agent.client.workflow.getHandle(session.id, runId).result()).toMatchObject({
    result: "Done without d.",
  });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe(
    "Not allowed, and not run: the person wrote a message instead, which follows.",
  );
  const statuses = (await questionRows(agent.database.store, session)).map(
    ({ id, status }) => `${id} ${status}`,
  );
  expect(statuses).toEqual(["s1c0 declined", "s2c0 superseded", "s2c0 withdrawn"]);
  await checkSession(agent, session);
});

it("plans in a read-only workspace, and carries the plan out once it is approved", async () => {
  const write = call("write_file", { path: "a.txt", content: "a\n" });
  const script = scriptedModel()
    .answers(call("bash", { command: "cat b.txt; echo x > a.txt; echo y > /tmp/y && cat /tmp/y" }), write)
    .calls("exit_plan", { plan: "# Write a.txt" })
    .calls("exit_plan", { plan: "# Write a.txt, carefully" })
    .answers(write)
    .calls("bash", { command: "cat a.txt b.txt" })
    .says("Done.")
    // The fork's.
    .calls("bash", { command: "echo z > z.txt; ls" })
    .says("Forked.");
  const session = await agent.start(script, {
    config: { plan: true },
    workspace: await packWorkspace([file("b.txt", "b\n")]),
  });
  const asked = await session.until("question:asked");
  expect(asked.data).toMatchObject({ id: "s2c0", kind: "plan", text: "# Write a.txt" });
  const [tried = "", refused = ""] = await resultTexts(agent.database.store, session.id);
  expect(tried).toMatch(/^b\n.*a\.txt: Read-only file system\ny/);
  expect(refused).toMatch(/^There is no tool "write_file"\./);
  expect(session.model.requests[0]?.tools.map(({ name }) => name)).not.toContain("write_file");
  await session.handle.signal("answer", "carefully");
  await session.until("question:asked", ({ data }) => data.text === "# Write a.txt, carefully");
  await session.handle.signal("answer", { action: "allow" });
  expect(await session.result()).toMatchObject({ result: "Done." });
  const texts = await resultTexts(agent.database.store, session.id);
  expect(texts[2]).toMatch(/^The person wants the plan changed: carefully\n/);
  expect(texts[3]).toMatch(/^The person approved the plan\n/);
  expect(texts.at(-1)).toBe("a\nb");
  const tools = session.model.requests.at(-1)?.tools.map(({ name }) => name);
  expect(tools).toContain("write_file");
  expect(tools).not.toContain("exit_plan");
  await checkSession(agent, session);
  const fork = agent.adopt(`${session.id}-fork`, session);
  const from = await sessionRow(agent, session.id);
  await forkSession(clientServices(agent), from, { fromStep: 4, message: "Otherwise.", id: fork.id });
  expect(await fork.result()).toMatchObject({ result: "Forked." });
  expect((await resultTexts(agent.database.store, fork.id)).at(-1)).toBe("b.txt\nz.txt");
  expect(session.model.requests.at(-1)?.tools.map(({ name }) => name)).not.toContain("exit_plan");
});
