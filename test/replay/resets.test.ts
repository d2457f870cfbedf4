/** A run may be reset to any of its workflow tasks: it replays up to there, and goes the same way if all that followed comes again. */
import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker } from "@temporalio/worker";
import { historyFromJSON } from "@temporalio/common/lib/proto-utils.js";
import { beforeAll, expect, it } from "vitest";
import { ensureWorkflowBundle } from "../../worker/bundle.ts";
import { dataConverter } from "../../temporal/codec.ts";
import { originOf } from "../../temporal/reset-origin.ts";
import { workflowSinks } from "../../worker/worker-options.ts";
import { recordedHistories } from "../support/history-fixture.ts";
import { resetsOf } from "../support/reset-histories.ts";

beforeAll(() => {
  const filter = makeTelemetryFilterString({ core: "ERROR" });
  Runtime.install({ logger: new DefaultLogger("ERROR"), telemetryOptions: { logging: { filter } } });
});

const resets = recordedHistories().flatMap(resetsOf);
/** `npm run chaos -- --resets` replays all of them, which takes a processor 12 s. */
const replayed =
  process.env["LONGHAUL_RESETS"] === undefined ? resets.filter((_, at) => at % 4 === 0) : resets;

it(
  "recorded histories that are reset to their workflow tasks replay on today's code",
  { tags: ["A11"], timeout: 240_000 },
  async () => {
    const { codePath } = await ensureWorkflowBundle();
    const results = Worker.runReplayHistories(
      { workflowBundle: { codePath }, dataConverter, sinks: workflowSinks() },
      replayed.flatMap(({ name, cut, again }) => [
        { workflowId: name, history: cut },
        { workflowId: `${name}, and all again`, history: again },
      ]),
    );
    const failures: string[] = [];
    let replays = 0;
    for await (const { workflowId, error } of results) {
      replays += 1;
      if (error !== undefined) failures.push(`${workflowId}: ${error.message}`);
    }
    expect(failures).toEqual([]);
    expect(replays).toBe(2 * replayed.length);
    expect(resets.length).toBeGreaterThan(240);
  },
);

it("how far a run had come when it was reset never goes back as its history grows", () => {
  const places = new Map<string, number>();
  for (const { name, shape, cut } of resets) {
    const origin = originOf(historyFromJSON(cut));
    if (origin === undefined || "continues" in origin) throw new Error(`${name} is not a reset run`);
    const { step = 0, phase, open = [] } = origin.place;
    // Results that are missing count against the step's end.
    const far = phase === "model" ? step : step + 0.5 - open.length / 100;
    expect(far, name).toBeGreaterThanOrEqual(places.get(shape) ?? 0);
    places.set(shape, far);
  }
});
