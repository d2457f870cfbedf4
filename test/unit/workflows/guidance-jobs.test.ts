import { defaultPayloadConverter } from "@temporalio/common";
import { describe, expect, it } from "vitest";
import { Undecodable } from "../../../activities/contract/undecodable.ts";
import { interceptors, route } from "../../../workflows/guidance-jobs.ts";
import { thisRun } from "../../../workflows/this-run.ts";

const signal = (signalName: string, ...args: unknown[]) => ({
  signalWorkflow: { signalName, input: args.map((value) => defaultPayloadConverter.toPayload(value)) },
});
const other = (name: string) => ({ [name]: {} });

/** Events in order: messages unchanged, other jobs by their names, those of one list together. */
function routed(jobs: readonly object[]): unknown[] {
  const seen: unknown[] = [];
  route(
    jobs,
    (message) => void seen.push(message),
    (some) => void seen.push(some.map((job) => Object.keys(job)[0])),
  );
  return seen;
}

describe("the jobs of a workflow task", () => {
  it(
    "are taken in order: messages one by one, all others in lists between them",
    { tags: ["invariant-6"] },
    () => {
      const jobs = [
        signal("guidance", { id: "a", text: "one" }),
        signal("guidance", "two"),
        signal("interrupt", "stop"),
        other("resolveActivity"),
        signal("guidance", { text: "three" }),
        other("doUpdate"),
      ];
      expect(routed(jobs)).toEqual([
        { id: "a", text: "one" },
        "two",
        ["signalWorkflow", "resolveActivity"],
        { text: "three" },
        ["doUpdate"],
      ]);
    },
  );

  it("are left to the SDK if there is no message", () => {
    expect(routed([other("cancelWorkflow")])).toEqual([["cancelWorkflow"]]);
    expect(routed([])).toEqual([]);
  });

  it("may include a message in another encoding, which its handler refuses", () => {
    const foreign = {
      signalWorkflow: {
        signalName: "guidance",
        input: [
          { metadata: { encoding: new TextEncoder().encode("binary/secret") }, data: new Uint8Array(3) },
        ],
      },
    };
    expect(routed([foreign, other("cancelWorkflow")])).toEqual([expect.any(Undecodable), ["cancelWorkflow"]]);
  });

  it("may include an empty message, which its handler refuses", () => {
    expect(routed([signal("guidance")])).toEqual([undefined]);
  });
});

describe("messages before the run's start", () => {
  /** A run that begins with the first list of jobs. @returns how it got its messages */
  function begunWith(messages: number): { own: unknown[]; left: number } {
    const run = thisRun();
    delete run.takeMessage;
    const own: unknown[] = [];
    let left = 0;
    const jobs = [
      { initializeWorkflow: {} },
      ...Array.from({ length: messages }, (_, place) => signal("guidance", place)),
    ];
    interceptors().internals?.[0]?.activate?.({ activation: { jobs }, batchIndex: 0 }, ({ activation }) => {
      left += (activation.jobs ?? []).length - 1;
      run.takeMessage = (message) => void own.push(message);
    });
    return { own, left };
  }

  it("are left to the SDK if they are few, which keeps their order among all jobs", () => {
    expect(begunWith(99)).toEqual({ own: [], left: 99 });
  });

  it("are all taken, in order, as soon as it has begun if they are a flood", { tags: ["R44"] }, () => {
    expect(begunWith(10_000)).toEqual({
      own: Array.from({ length: 10_000 }, (_, place) => place),
      left: 0,
    });
  });
});
