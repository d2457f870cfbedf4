import { setTimeout as sleep } from "node:timers/promises";
import { WorkflowNotFoundError } from "@temporalio/client";
import { describe, expect, it } from "vitest";
import type { AgentActivities, ModelStepFacts } from "../../activities/contract/activities.ts";
import { eventually } from "../support/eventually.ts";
import { answered, bashCall, sessionHere, type FakeActivities } from "../support/fake-activities.ts";
import { play, type Handle } from "../support/play-loop.ts";

/** Enough sessions that a message meets each moment of their ends; a few at once. */
const REPEATS = { completed: 60, failed: 20 } as const;
const AT_ONCE = 6;

/** Each session's only answer is met by a message, in each a little later. @returns ids that the server took */
async function race(
  answer: ModelStepFacts,
  repeats: number,
): Promise<{ accepted: string[]; fake: FakeActivities }> {
  const asked = new Set<string>();
  const accepted: string[] = [];
  const meet = async (handle: Handle, repeat: number) => {
    await eventually("the model is asked", () => asked.has(handle.workflowId), 60_000);
    await sleep((repeat * 150) / repeats);
    try {
      await handle.signal("guidance", { id: handle.workflowId, text: "one more thing" });
      accepted.push(handle.workflowId);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
    await handle.result().catch(() => undefined);
  };
  const step = async () => {
    asked.add(sessionHere());
    await sleep(40);
    return answer;
  };
  const { fake } = await play({ steps: [step] }, async (_first, _fake, startAnother) => {
    let next = 0;
    const lane = async () => {
      while (next < repeats) await meet(await startAnother(), next++);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  });
  return { accepted, fake };
}

describe("a message that meets the end of a run", () => {
  it(
    "completed in that moment is heard in one more step, or refused to its sender: never lost",
    { tags: ["R45"], timeout: 240_000 },
    async () => {
      const { accepted, fake } = await race(answered(), REPEATS.completed);
      expect(accepted.length).toBeGreaterThan(0);
      expect(fake.heardIds().toSorted()).toEqual(accepted.toSorted());
    },
  );

  it(
    "failed in that moment is kept for the next run, or refused to its sender",
    { tags: ["R45"], timeout: 240_000 },
    async () => {
      const { accepted, fake } = await race(answered([], { finish: "content-filter" }), REPEATS.failed);
      expect(accepted.length).toBeGreaterThan(0);
      const kept = new Set(fake.stored());
      expect(accepted.filter((id) => !kept.has(id))).toEqual([]);
    },
  );

  it(
    "is kept for the next run also if the run has failed and is being closed",
    { tags: ["invariant-6"] },
    async () => {
      const { fake } = await play({
        steps: [answered([], { finish: "content-filter" })],
        whileClosing: (handle) => handle.signal("guidance", { id: "late", text: "late" }),
      });
      expect(fake.stored()).toEqual(["late"]);
    },
  );

  it("is kept also while the end is being announced, however the run ends, however many come", async () => {
    const ends = [
      { steps: [answered([bashCall])], maxSteps: 1 },
      { steps: [answered([], { finish: "content-filter" })] },
    ];
    for (const end of ends) {
      const sending = Promise.withResolvers<void>();
      const sent = Promise.withResolvers<void>();
      const storing = Promise.withResolvers<void>();
      const [stored, accepted]: [string[], string[]] = [[], []];
      const storeGuidance: AgentActivities["storeGuidance"] = async ({ items }) => {
        stored.push(...items.map(({ id }) => id));
        storing.resolve();
        return {};
      };
      const notify = async () => {
        sending.resolve();
        await sent.promise;
      };
      await play(
        { ...end, policy: { notifies: true }, activities: { notify, storeGuidance } },
        async (handle) => {
          const say = async (id: string) => {
            await handle.signal("guidance", { id, text: id });
            accepted.push(id);
          };
          await sending.promise;
          await say("first");
          await say("second");
          sent.resolve();
          await storing.promise;
          // The run may have ended by now: then its sender is told.
          await say("third").catch(() => undefined);
        },
      );
      expect(accepted.length).toBeGreaterThanOrEqual(2);
      expect(stored).toEqual(accepted);
    }
  });
});
