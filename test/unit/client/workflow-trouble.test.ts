/** What workers fail at, from a run's newest events as Temporal writes them. */
import { expect, it } from "vitest";
import { troubleOfTasks } from "../../../client/connect/describe-run.ts";

const NO_KEY = {
  message: 'no key "one"',
  applicationFailureInfo: { type: "CodecKeyMissing" },
};
const event = (attributes: string): Record<string, object> => ({ [attributes]: {} });
const signal = event("workflowExecutionSignaledEventAttributes");
const scheduled = event("workflowTaskScheduledEventAttributes");
const completed = { workflowTaskCompletedEventAttributes: {} };
/** 24: the worker's own failure. */
const failed = (cause = 24) => ({ workflowTaskFailedEventAttributes: { cause, failure: NO_KEY } });

it("names the failure also while a message makes Temporal count the attempts from one again", () => {
  const said = 'the workflow, attempt 1: CodecKeyMissing: no key "one"';
  expect(troubleOfTasks(1, [scheduled, signal, failed(), scheduled, completed])).toBe(said);
  expect(troubleOfTasks(1, [signal, signal, failed()])).toBe(said);
  expect(troubleOfTasks(7, [signal, failed(), completed])).toBe(said.replace("1:", "7:"));
});

it("names none after a task that was done, was not answered or never was", () => {
  expect(troubleOfTasks(1, [scheduled, signal, completed, failed()])).toBeUndefined();
  expect(
    troubleOfTasks(2, [scheduled, { workflowTaskTimedOutEventAttributes: {} }, failed()]),
  ).toBeUndefined();
  expect(troubleOfTasks(1, [scheduled, signal])).toBeUndefined();
});

it.each([
  ["a message that came while the run ended", 1],
  ["a closed run", 17],
  ["a reset", 20],
  ["an update that came while the run ended", 31],
])("takes %s for no failure", (_what, cause) => {
  expect(troubleOfTasks(1, [scheduled, failed(cause), completed])).toBeUndefined();
});
