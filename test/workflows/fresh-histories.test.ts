/** A session that goes through many histories while it is spoken to; and messages that are refused. */
import { setTimeout as sleep } from "node:timers/promises";
import { WorkflowNotFoundError, WorkflowUpdateFailedError } from "@temporalio/client";
import { describe, expect, it } from "vitest";
import { answered, bashCall } from "../support/fake-activities.ts";
import { play, type Handle } from "../support/play-loop.ts";

it(
  "signals every 20 ms over many continue-as-new are each heard once, in order, without error",
  { tags: ["A8", "A10"], timeout: 240_000 },
  async () => {
    let done = false;
    const sent: string[] = [];
    const { fake, value } = await play(
      {
        steps: [
          async () => {
            await sleep(15);
            return done ? answered() : answered([bashCall]);
          },
        ],
        maxSteps: 100_000,
        maxHistoryEvents: 60,
      },
      async (handle, playing) => {
        const runs = () => playing.inputsOf("openSession").length;
        const end = Date.now() + 120_000;
        for (let place = 0; (place < 200 || runs() < 5) && Date.now() < end; place += 1) {
          const id = `m${place}`;
          sent.push(id);
          await handle.signal("guidance", { id, text: `remark ${place}` });
          // Again at once, and again when it may be in an earlier history.
          if (place % 10 === 0) await handle.signal("guidance", { id, text: `remark ${place}` });
          if (place % 10 === 5 && place > 60)
            await handle.signal("guidance", { id: `m${place - 50}`, text: "again" });
          await sleep(20);
        }
        done = true;
      },
    );
    expect(value?.status).toBe("completed");
    expect(fake.takenMessages().map(({ id }) => id)).toEqual(sent);
    const opened = fake.inputsOf("openSession");
    expect(opened.filter((input) => input.continuedStep !== undefined).length).toBeGreaterThanOrEqual(3);
    // Steps are counted on: none is missing, none comes twice.
    const steps = fake.steps();
    expect(steps).toEqual(steps.map((_, place) => place + 1));
  },
);

describe("an update", () => {
  const send = (handle: Handle, message: unknown) =>
    handle.executeUpdate("sendGuidance", { args: [message as never] });

  it(
    "that is empty, malformed, too large or one too many is refused, and leaves no event",
    { tags: ["A9"] },
    async () => {
      const gate = Promise.withResolvers<void>();
      const replies: unknown[] = [];
      const refusals: (string | undefined)[] = [];
      const { handle } = await play(
        { steps: [() => gate.promise.then(() => answered([bashCall])), answered()] },
        async (running) => {
          const refused = async (message: unknown) => {
            const error = await send(running, message).catch((reason: unknown) => reason);
            expect(error).toBeInstanceOf(WorkflowUpdateFailedError);
            refusals.push(
              ((error as WorkflowUpdateFailedError).cause as { type?: string } | undefined)?.type,
            );
          };
          try {
            await refused({ text: "" });
            await refused(42);
            // Never sent: what enters the history is bounded at the sender's.
            await expect(send(running, { text: "x".repeat(70_000) })).rejects.toThrow("70");
            replies.push(await send(running, { id: "good", text: "use tabs" }));
            const others = Array.from({ length: 99 }, (_, place) => ({ id: `m${place}`, text: "more" }));
            await Promise.all(others.map((message) => running.signal("guidance", message)));
            await refused({ text: "one too many" });
            // Known already: reported as such, not refused.
            replies.push(await send(running, { id: "good", text: "use tabs" }));
          } finally {
            gate.resolve();
          }
        },
      );
      expect(replies).toEqual([
        { queued: true, position: 1 },
        { queued: false, position: 100 },
      ]);
      expect(refusals).toEqual(["GuidanceRefused", "GuidanceRefused", "GuidanceRefused"]);
      const { events } = await handle.fetchHistory();
      const accepted = (events ?? []).filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes);
      expect(accepted).toHaveLength(2);
      await expect(send(handle, { text: "too late" })).rejects.toThrow(WorkflowNotFoundError);
    },
  );
});
