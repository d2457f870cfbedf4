/** As restored-older.test.ts, for what belongs to more than one step: compactions and delegates. */
import { expect, it } from "vitest";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { delegating } from "../support/delegating.ts";
import { copyRows, type OlderCopy } from "../support/older-copy.ts";
import { expectSaid, gate, marks, startCopied } from "../support/restored.ts";
import { call, text } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest, noisyStep } from "../support/scripted-summaries.ts";
import { sessionEvents } from "../support/session-events.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

it("during a compaction: no round replaces rows that are gone, and the run goes on", async () => {
  const late = gate((request) => goodSummary(request));
  const held = gate(marks(5));
  const older = Promise.withResolvers<OlderCopy>();
  let step = 0;
  let summaries = 0;
  const session: RunningSession = await agent.start(
    async (request, index) => {
      if (isSummaryRequest(request))
        return (summaries += 1) === 1 ? late.turn(request, index) : goodSummary(request);
      step += 1;
      if (step === 2) older.resolve(await copyRows(agent.database.store, request.cacheKey ?? ""));
      if (step === 5) return held.turn(request, index);
      if (step < 5) return { parts: [...marks(step).parts, ...(noisyStep(step, 200).parts ?? [])] };
      return step < 7 ? marks(step) : { parts: [text("Done.")] };
    },
    { config: { context: { options: { keepMessages: 2 } } } },
  );
  await held.asked;
  await session.handle.signal("compact", {});
  held.open();
  await late.asked;
  await (await older.promise).restore();
  late.open();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  await expectSaid(agent, session, 2, 5);
  await checkSession(agent, session, { kills: 6 });
}, 90_000);

it("while a delegate works, older than it: its call's step is missing, its parent goes on", async () => {
  const late = gate({ parts: [text("The delegate's answer.")] });
  const { session, older } = await startCopied(
    agent,
    { count: 2, copied: 2, config: delegating() },
    (script) => script.calls("delegate", { task: "Look." }).replies(late.turn).says("Done."),
  );
  await late.asked;
  await (await older).restore();
  late.open();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  await expectSaid(agent, session, 2, 3);
});

it("while a delegate works, older by its steps alone: it is told so, and its result counts", async () => {
  const late = gate({ parts: [text("It belongs to rows that are gone.")] });
  const older = Promise.withResolvers<OlderCopy>();
  let child = 0;
  const session: RunningSession = await agent.start(
    async (request, index) => {
      const id = request.cacheKey ?? "";
      if (!id.includes("."))
        return index === 0 ? { parts: [call("delegate", { task: "Look." })] } : { parts: [text("Done.")] };
      child += 1;
      if (child === 2) older.resolve(await copyRows(agent.database.store, id.split(".")[0] ?? ""));
      if (child === 4) return late.turn(request, index);
      return child < 4 ? marks(child) : { parts: [text("The delegate's answer.")] };
    },
    { config: delegating() },
  );
  await late.asked;
  await (await older.promise).restore();
  late.open();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  expect((await resultTexts(agent.database.store, session.id))[0]).toContain("The delegate's answer.");
  expect(await session.dataOf("record:missing")).toEqual([]);
  const events = sessionEvents(agent.database.store, `${session.id}.s1c0`);
  expect(await events.dataOf("record:missing")).toEqual([{ from: 2, to: 3 }]);
});
