/** Terminals in a session: what is typed in one step is typed in the order of its calls, and a delegate has them too. */
import { expect, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

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
