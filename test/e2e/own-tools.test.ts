/** The operator's own tools, from a project that has installed the packed library. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, say } from "../support/client-services.ts";
import { useAgent } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { installPacked } from "../support/packed-package.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

const TOOLS = `
import { appendFileSync } from "node:fs";
import { defineTool } from "longhaul/tools";
import { z } from "zod";

const MARKS = new URL("marks.txt", import.meta.url);

export default [
  defineTool({
    name: "now",
    description: "Tells the time of a zone.",
    input: z.object({ zone: z.string().default("UTC") }),
    readOnly: true,
    run: ({ zone }) => "12:00 " + zone.toUpperCase(),
  }),
  defineTool({
    name: "open_ticket",
    description: "Opens a ticket.",
    input: z.object({ title: z.string().min(1) }),
    async run({ title }, { idempotencyKey, sandbox, signal }) {
      appendFileSync(MARKS, idempotencyKey + "\\n");
      await sandbox.writeFile("ticket.txt", title);
      const { output, exitCode } = await sandbox.exec("cat ticket.txt; exit 3");
      if (title === "hang") await new Promise((_, reject) => signal.addEventListener("abort", reject));
      // @ts-expect-error there is no such input
      void title.zone;
      return { text: output + " " + exitCode + " " + (await sandbox.readFile("ticket.txt")), isError: false };
    },
  }),
];
`;

it("runs in the worker with the sandbox; killed in mid-call it is unknown and not repeated", async () => {
  const consumer = installPacked();
  onTestFinished(() => consumer.remove());
  const file = join(consumer.folder, "tools.ts");
  writeFileSync(file, TOOLS);
  consumer.compile("tools.ts");
  const marks = () => {
    const path = join(consumer.folder, "marks.txt");
    return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  };
  const script = scriptedModel()
    .answers(
      call("now", { zone: "cet" }),
      call("open_ticket", { title: "First" }),
      call("open_ticket", { title: 3 }),
    )
    .calls("open_ticket", { title: "hang" })
    .says("Done.")
    .calls("now", {})
    .says("It is missing.");
  const session = await startKillableSession(agent.database, script, {
    config: { permissions: [{ tool: "open_*", match: "*Denied*", action: "deny" }] },
  });
  const { id } = session;
  const worker = await session.startWorker({ LONGHAUL_TOOLS: file });
  await eventually("the second ticket is being opened", () => marks().length === 2, 90_000);
  await worker.kill();
  const second = await session.startWorker({ LONGHAUL_TOOLS: file });
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });
  expect(marks()).toEqual([`${id}.e1s1c1`, `${id}.e1s2c0`]);
  const [now, opened, wrong, unknown] = await resultTexts(agent.database.store, id);
  expect(now).toBe("12:00 CET");
  expect(opened).toBe("First 3 First");
  expect(wrong).toMatch(/^The arguments of open_ticket are wrong; the call was not made\.\n- title: /);
  expect(unknown).toMatch(
    /^It is not known how this call of open_ticket ended: the worker that ran it was lost/,
  );

  await second.kill();
  await session.startWorker();
  const services = { ...clientServices(agent), taskQueue: id };
  await say(agent, id, { id: "m1", text: "And now?" }, services);
  expect(await session.services.client.workflow.getHandle(id).result()).toMatchObject({
    result: "It is missing.",
  });
  expect((await resultTexts(agent.database.store, id)).at(-1)).toMatch(/^This worker has no tool now/);
  const offered = session.model.requests.map((request) => JSON.stringify(request.tools));
  expect(offered[0]).toContain("Opens a ticket.");
  expect(new Set(offered).size).toBe(1);
  await checkSession(session.services, session, { kills: 2 });
});

it("obeys plan mode, and is absent for a session that began without it", async () => {
  const { parseOwnTools: ownToolsOf } = await import("../../activities/tools/own/own-tools.ts");
  const { z } = await import("zod");
  const before = await agent.run(scriptedModel().says("Hello.").calls("look", {}).says("There is none."));
  const tool = (name: string, readOnly: boolean) => ({
    name,
    description: `${name}.`,
    input: z.object({}),
    readOnly,
    run: () => `${name} was run`,
  });
  Object.assign(agent.deps, { ownTools: ownToolsOf([tool("look", true), tool("change", false)]) });
  onTestFinished(() => void Object.assign(agent.deps, { ownTools: undefined }));
  const planning = await agent.run(
    scriptedModel().answers(call("look", {}), call("change", {})).says("Looked."),
    { config: { plan: true } },
  );
  expect(await resultTexts(agent.database.store, planning.id)).toEqual([
    "look was run",
    expect.stringMatching(/^There is no tool "change"/),
  ]);
  await say(agent, before.id, { id: "m1", text: "Look." });
  expect(await agent.client.workflow.getHandle(before.id).result()).toMatchObject({
    result: "There is none.",
  });
  expect((await resultTexts(agent.database.store, before.id)).at(-1)).toMatch(/^There is no tool "look"/);
});
