/** Terminals in a session: what is typed in one step is typed in the order of its calls, and a delegate has them too. */
import { expect, it } from "vitest";
import { cancelSession } from "../../client/sessions/stop-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { untilCalls } from "../support/waits.ts";

const agent = useAgent();

it("types two texts of one step in their order, and a person's rule asks about a third", async () => {
  const type = (text: string) => call("write_stdin", { id: "s1c0", text });
  const script = scriptedModel()
    .answers(call("bash", { command: "cat > order.txt", terminal: true }))
    .answers(type("first\n"), type("second\n"), type("third\n"), type("fourth\n"))
    .answers(type("rm order.txt\n"))
    .answers(call("write_stdin", { id: "s1c0", keys: ["ctrl+d"] }))
    .answers(call("bash", { command: "cat order.txt" }))
    .says("Done.");
  const session = await agent.start(script, {
    config: { permissions: [{ tool: "bash", match: "rm *", action: "ask" }] },
  });
  const asked = await session.until("question:asked");
  expect(asked.data.text).toContain('"text":"rm order.txt\\n"');
  await session.handle.signal("answer", { action: "deny", text: "keep it" });
  expect(await session.result()).toMatchObject({ result: "Done." });
  const texts = await resultTexts(agent.database.store, session.id);
  expect(texts.slice(1, 5).map((text) => text.split("\n")[0])).toEqual([
    "first",
    "second",
    "third",
    "fourth",
  ]);
  expect(texts.at(-1)).toBe("first\nsecond\nthird\nfourth");
});

it("ends with the session that is cancelled while it waits for a program", async () => {
  const stubborn = "trap '' HUP TERM INT; while :; do sleep 0.1; done";
  const script = scriptedModel()
    .answers(call("bash", { command: stubborn, terminal: true }))
    .answers(call("write_stdin", { id: "s1c0", text: "x", wait_ms: 30_000 }));
  const session = await agent.start(script);
  await untilCalls(agent.database.store, session.id, "completed", 1);
  await untilCalls(agent.database.store, session.id, "running");
  const row = await sessionRow(agent, session.id);
  const began = performance.now();
  expect(await cancelSession(clientServices(agent), row)).toMatchObject({
    tools: [{ name: "write_stdin", outcome: "interrupted" }],
  });
  expect(performance.now() - began).toBeLessThan(5_000);
  await agent.client.workflow
    .getHandle(session.id)
    .result()
    .catch(() => undefined);
  const left = await agent.docker.listContainers({
    filters: { label: [`longhaul.session=${session.id}`] },
  });
  expect(left).toEqual([]);
});
