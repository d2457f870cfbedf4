import { describe, expect, it } from "vitest";
import { failingStep } from "../../../activities/follow/failing-step.ts";
import type { StepFacts } from "../../../activities/forge/facts.ts";
import { failureExcerpt } from "../../../activities/verify/failure-excerpt.ts";

const at = (second: number) => new Date(Date.UTC(2026, 10, 27, 8, 0, second)).toISOString();
/** Steps have whole seconds, lines have parts of them. */
const step = (name: string, state: StepFacts["state"], from: number, to: number): StepFacts => ({
  name,
  state,
  startedAt: at(from).replace(".000Z", "Z"),
  endedAt: at(to).replace(".000Z", "Z"),
});
const line = (second: number, text: string) => `${at(second).replace("Z", "1234Z")} ${text}`;

const ENVIRONMENT = Array.from({ length: 5_000 }, (_, index) =>
  line(11, `  VARIABLE_${index}: error ${index}`),
);
const LOG = [
  line(1, "Runner error: none"),
  line(5, "##[group]Run npm ci"),
  line(9, "npm error: a warning of the step before"),
  line(10, "##[group]Run npm test"),
  line(10, "npm test"),
  line(10, "shell: /usr/bin/bash -e {0}"),
  line(10, "env:"),
  ...ENVIRONMENT,
  line(11, "##[endgroup]"),
  line(12, "one\rtwo\rdone"),
  line(13, "FAIL one.test.ts: boom"),
  line(14, "##[error]Process completed with exit code 1."),
  line(14, "##[group]Run actions/cleanup@v1"),
  line(15, "error: the clean-up found nothing"),
].join("\n");
const STEPS = [
  step("Install", "good", 5, 10),
  step("Test", "failed", 10, 14),
  step("Post checkout", "good", 14, 16),
];

describe("of a job of Actions", () => {
  it("the failing step's command and error are told, not the environment nor the clean-up (F11)", () => {
    const { text, command, step: name } = failingStep(LOG, STEPS);
    expect([command, name]).toEqual(["Run npm test", "Test"]);
    expect(text.split("\n")).toEqual([
      "##[group]Run npm test",
      "npm test",
      "done",
      "FAIL one.test.ts: boom",
      "##[error]Process completed with exit code 1.",
    ]);
    expect(failureExcerpt(text).firstError).toBe("FAIL one.test.ts: boom");
  });

  it("without times, the step is found by its name", () => {
    const plain = LOG.replaceAll(/^\S+ /gm, "");
    const timeless = STEPS.map((one) => ({ ...one, startedAt: undefined, endedAt: undefined }));
    const named = timeless.map((one) => (one.name === "Test" ? { ...one, name: "npm test" } : one));
    expect(failingStep(plain, named).text).toBe(failingStep(LOG, STEPS).text);
  });

  it.each([[undefined], [[]], [[step("Test", "failed", 40, 50)]]])(
    "the whole log is told where the step is not in it: %#",
    (steps) => {
      const { text, step: name } = failingStep(LOG, steps);
      expect(name).toBeUndefined();
      expect(text).toContain("the step before");
      expect(text).toContain("FAIL one.test.ts: boom");
      expect(text).not.toContain("VARIABLE_7:");
    },
  );
});

describe("of a job of GitLab", () => {
  const trace = (...after: string[]) =>
    [
      "Running with gitlab-runner 18",
      "section_start:1:prepare_executor\r",
      "error: no such image, pulled",
      "section_end:2:prepare_executor\r",
      "section_start:3:step_script\r",
      "$ npm test",
      "FAIL one.test.ts: boom",
      "section_end:4:step_script\r",
      ...after,
    ].join("\n");

  it("the last section before its failure is told, which is no clean-up (F11)", () => {
    const log = trace(
      "section_start:5:after_script\rRunning after_script",
      "error: nothing to do",
      "section_end:6:after_script\r",
      "section_start:7:cleanup_file_variables\r",
      "Cleaning up",
      "section_end:8:cleanup_file_variables\r",
      "ERROR: Job failed: exit code 1",
    );
    expect(failingStep(log, undefined)).toEqual({
      text: "$ npm test\nFAIL one.test.ts: boom",
      step: "step_script",
      command: undefined,
    });
  });

  it("one that has not failed in its words is told whole", () => {
    expect(failingStep(trace(), undefined)).toMatchObject({ step: undefined });
  });
});

it("a log of nothing, and of nothing but times, has no failure", () => {
  expect(failingStep("", STEPS)).toEqual({ text: "", step: undefined, command: undefined });
  expect(failingStep(`${line(12, "")}\n`, STEPS)).toMatchObject({ step: "Test", command: undefined });
});
