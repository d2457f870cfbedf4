import { ApplicationFailure } from "@temporalio/common";
import { CompleteAsyncError, Context } from "@temporalio/activity";
import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  answered,
  bashCall,
  interrupted,
  untilStopped,
  type FakeActivities,
} from "../support/fake-activities.ts";
import { play, playTwice, type Handle } from "../support/play-loop.ts";

const databaseAway = (): never => {
  throw ApplicationFailure.create({ type: "DatabaseUnavailable", message: "Postgres: away." });
};
const unreachable = (): never => {
  throw ApplicationFailure.create({ type: "ModelUnavailable", message: "down", nextRetryDelay: 600_000 });
};

const heard = (fake: FakeActivities) => fake.heardBy;
/** A step that an interrupt ends, and the next one. */
const steps = [untilStopped(interrupted), answered()];
const interrupt = (handle: Handle, id: string) => handle.signal("interrupt", { id, text: id });

describe("an interrupt", () => {
  it("keeps what waited before it, in order, and continues", { tags: ["case-23"] }, async () => {
    const { fake, value } = await play({ steps }, async (handle, fake) => {
      await fake.untilAsked(1);
      await handle.signal("guidance", { id: "before", text: "before" });
      await interrupt(handle, "stop");
      await handle.signal("guidance", { id: "after", text: "after" });
    });
    expect(value?.status).toBe("completed");
    expect(fake.heardIds()).toEqual(["before", "stop", "after"]);
  });

  it(
    "that comes twice at once ends one step, and both messages are heard",
    { tags: ["case-23"] },
    async () => {
      const { fake, value } = await play({ steps }, async (handle, fake) => {
        await fake.untilAsked(1);
        await Promise.all([interrupt(handle, "one"), interrupt(handle, "two")]);
      });
      expect(value?.status).toBe("completed");
      expect(fake.heardIds().toSorted()).toEqual(["one", "two"]);
      expect(fake.inputsOf("modelStep").length).toBeLessThanOrEqual(3);
    },
  );

  it(
    "ends the wait for a provider that is away, and what the step was to bring is brought",
    { tags: ["case-23"] },
    async () => {
      const { fake, value } = await play(
        { steps: [answered([bashCall]), unreachable, answered()] },
        async (handle, fake) => {
          await handle.signal("guidance", { id: "early", text: "early" });
          await fake.untilAsked(2);
          await interrupt(handle, "now");
        },
      );
      expect(value?.status).toBe("completed");
      expect(heard(fake).at(-1)).toContain("now");
      expect(fake.heardIds()).toContain("early");
    },
  );

  it("that meets a failing database is still an interrupt: the run continues", async () => {
    const { fake, value } = await play(
      { steps: [untilStopped(databaseAway), answered()] },
      async (handle, fake) => {
        await fake.untilAsked(1);
        await interrupt(handle, "stop");
      },
    );
    expect(value?.status).toBe("completed");
    expect(heard(fake).at(-1)).toEqual(["stop"]);
  });

  it("between two runs of a session interrupts nothing and is heard", async () => {
    const { fake, value } = await play(
      { steps: [answered([bashCall]), answered()] },
      async (handle, fake) => {
        await interrupt(handle, "at the start");
        await fake.untilAsked(1);
      },
    );
    expect(value?.status).toBe("completed");
    expect(fake.heardIds()).toEqual(["at the start"]);
  });
});

describe("an interrupt that finds nothing to abort yet", () => {
  it("while the sandbox opens keeps the step's calls from beginning, without waiting for it", async () => {
    const opened = Promise.withResolvers<void>();
    const { fake, value } = await play(
      {
        steps: [answered([bashCall]), answered()],
        activities: {
          openSandbox: async () => {
            await opened.promise;
            return { container: "fake-sandbox" };
          },
        },
      },
      async (handle, fake) => {
        await eventually(
          "the calls wait for the sandbox",
          async () => (await handle.query<{ phase: string }>("status")).phase === "running tools",
        );
        await interrupt(handle, "stop");
        await fake.untilAsked(2);
        opened.resolve();
      },
    );
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("runTool")).toEqual([]);
    expect(heard(fake)).toEqual([[], ["stop"]]);
  });

  it("in the very task that brings the answer keeps the calls that it asks for from beginning", async () => {
    const held = Promise.withResolvers<Uint8Array>();
    const { fake, value } = await playTwice(
      {
        steps: [
          () => {
            held.resolve(Context.current().info.taskToken);
            throw new CompleteAsyncError();
          },
          answered(),
        ],
      },
      // No worker is there: what comes now is handed to the workflow in one task.
      async (handle, client) => {
        await client.activity.complete(await held.promise, answered([bashCall]));
        await interrupt(handle, "stop");
      },
      () => held.promise,
    );
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("runTool")).toEqual([]);
    expect(heard(fake)).toEqual([[], ["stop"]]);
  });
});

describe("a cancel", () => {
  it.each([
    ["in the middle of an answer", untilStopped(interrupted)],
    ["while a provider is waited for", unreachable],
    ["that meets a failing database", untilStopped(databaseAway)],
  ])("%s ends the run as Cancelled, its finaliser done", async (_name, step) => {
    const { fake, handle, failure } = await play({ steps: [step] }, async (handle, fake) => {
      await fake.untilAsked(1);
      await handle.cancel();
    });
    expect(failure?.cause?.name).toBe("CancelledFailure");
    expect((await handle.describe()).status.name).toBe("CANCELLED");
    expect(fake.inputsOf("closeSession")).toEqual([expect.objectContaining({ status: "cancelled" })]);
    expect(fake.inputsOf("closeSandbox")).toHaveLength(1);
  });

  it("while the files are saved for a fresh history ends the session, and no run follows", async () => {
    let started: Handle | undefined;
    const { fake, handle, failure } = await play(
      {
        steps: [answered([bashCall])],
        maxHistoryEvents: 50,
        activities: {
          saveWorkspace: async () => {
            await started?.cancel();
            return untilStopped(() => ({ changed: 0, bytes: 0 }))();
          },
        },
      },
      async (handle) => {
        started = handle;
      },
    );
    expect(failure?.cause?.name).toBe("CancelledFailure");
    expect((await handle.describe()).status.name).toBe("CANCELLED");
    expect(fake.inputsOf("openSession")).toHaveLength(1);
    expect(fake.inputsOf("closeSession")).toEqual([expect.objectContaining({ status: "cancelled" })]);
  });

  it("a message that comes while a completed session closes is kept: it waits for the next run", async () => {
    const { fake, handle, failure } = await play({
      steps: [answered()],
      whileClosing: async (handle) => {
        await handle.signal("guidance", { id: "more", text: "more" });
        await handle.cancel();
      },
    });
    expect(failure?.cause?.name).toBe("CancelledFailure");
    expect((await handle.describe()).status.name).toBe("CANCELLED");
    expect(fake.inputsOf("openSession")).toHaveLength(1);
    expect(fake.stored()).toEqual(["more"]);
  });

  it("keeps what was said and not read, for the session's next run", async () => {
    const { fake } = await play({ steps: [unreachable] }, async (handle, fake) => {
      await fake.untilAsked(1);
      await handle.signal("guidance", { id: "late", text: "late" });
      await handle.cancel();
    });
    expect(fake.stored()).toEqual(["late"]);
  });
});

it("a message while a failed run closes is kept, and its sender hears that it waits", async () => {
  let reply: unknown;
  const { fake, failure } = await play({
    steps: [
      () => {
        throw ApplicationFailure.nonRetryable("No such key.", "ModelCredentials");
      },
    ],
    whileClosing: async (handle) => {
      reply = await handle.executeUpdate("sendGuidance", { args: [{ id: "late", text: "late" }] });
    },
  });
  expect(failure?.cause?.type).toBe("ModelCredentials");
  expect(reply).toEqual({ queued: true, position: 1, waitsForNextRun: true });
  expect(fake.stored()).toEqual(["late"]);
});

it("a run that could not open its session says so to the activities that close it", async () => {
  const { fake, failure } = await play({
    steps: [answered()],
    activities: {
      openSession: async () => {
        throw ApplicationFailure.nonRetryable("Postgres: away.", "DatabaseUnavailable");
      },
    },
  });
  expect(failure?.cause?.type).toBe("DatabaseUnavailable");
  expect(fake.inputsOf("closeSandbox")).toEqual([{ step: 0, neverOpened: {} }]);
  expect(fake.inputsOf("closeSession")).toEqual([expect.objectContaining({ neverOpened: {} })]);
});

it(
  "a sandbox that cannot be closed does not stop the run's end, and the session says why",
  { tags: ["invariant-14"] },
  async () => {
    const { fake, value } = await play({
      steps: [answered()],
      activities: {
        closeSandbox: async () => {
          throw ApplicationFailure.nonRetryable("The engine is away.", "SandboxUnavailable");
        },
      },
    });
    expect(value?.status).toBe("completed");
    expect(fake.inputsOf("closeSession")).toEqual([
      expect.objectContaining({ status: "completed", notClosed: "The engine is away." }),
    ]);
  },
);
