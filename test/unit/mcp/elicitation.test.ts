/** A server's forms as questions, and answers as the form's values. */
import { expect, test } from "vitest";
import {
  answersTo,
  questionsFor,
  answerValue,
  type FieldSchema,
} from "../../../activities/mcp/elicitation.ts";
import type { EndedQuestion, ServerQuestion } from "../../../activities/mcp/mcp.ts";

const nameOf = (place: number) => `s1c0q${place}`;
const form = (message: string, properties: object, required: string[] = []) => ({
  method: "elicitation/create",
  params: { message, requestedSchema: { type: "object", properties, required } },
});
const asked = (requests: Record<string, unknown>, questions: ServerQuestion[] | string) => {
  if (typeof questions === "string") throw new Error(questions);
  return { requests, questions };
};
const said = (
  ...answers: readonly (readonly [string, string | null, string?])[]
): Map<string, EndedQuestion> =>
  new Map(answers.map(([id, answer, status = "answered"]) => [id, { status, answer }]));

const REQUESTS = {
  first: form(
    "Which project?",
    {
      project: { type: "string", title: "Project", enum: ["a", "b"], enumNames: ["Alpha", "Beta"] },
      count: { type: "integer", minimum: 1, description: "how many" },
      note: { type: "string" },
    },
    ["project", "count"],
  ),
  page: {
    method: "elicitation/create",
    params: { mode: "url", message: "Log in", url: "https://a.example/x?y=1" },
  },
};

test("each field and each address is a question: choices are options, and optional fields say so", () => {
  const questions = questionsFor("github", REQUESTS, nameOf);
  expect(questions).toMatchObject([
    { id: "s1c0q1", request: "first", field: "project", about: "Which project?", options: ["Alpha", "Beta"] },
    { id: "s1c0q2", text: "github asks: Which project?\n2 of 3: count: how many (a number)" },
    { id: "s1c0q3", field: "note", isOptional: true },
    {
      id: "s1c0q4",
      request: "page",
      options: ["done"],
      text: expect.stringContaining("\nhttps://a.example/x?y=1\n"),
    },
  ]);
  expect(questionsFor("github", { all: form("Sure?", {}) }, nameOf)).toMatchObject([{ options: ["yes"] }]);
  expect(questionsFor("github", { one: { method: "sampling/createMessage", params: {} } }, nameOf)).toMatch(
    /not supported \(sampling/,
  );
});

test("answers become values, skipped fields are omitted, invalid answers are asked for again", () => {
  const of = asked(REQUESTS, questionsFor("github", REQUESTS, nameOf));
  const ready = answersTo(
    of,
    said(["s1c0q1", "Beta"], ["s1c0q2", "3"], ["s1c0q3", null, "declined"], ["s1c0q4", "done"]),
    nameOf,
  );
  expect(ready).toEqual({
    kind: "ready",
    responses: {
      first: { action: "accept", content: { project: "b", count: 3 } },
      page: { action: "accept" },
    },
    notes: [],
  });
  expect(answersTo(of, said(["s1c0q1", "Beta"]), nameOf)).toEqual({ kind: "open" });
  const unfit = answersTo(
    of,
    said(["s1c0q1", "Beta"], ["s1c0q2", "none"], ["s1c0q3", "x"], ["s1c0q4", "done"]),
    (place) => `s1c0q${4 + place}`,
  );
  expect(unfit).toMatchObject({ kind: "unfit", questions: [{ id: "s1c0q5", field: "count" }] });
});

test("an unanswered form is declined or cancelled, and the model gets a notice", () => {
  const of = asked(REQUESTS, questionsFor("github", REQUESTS, nameOf));
  expect(answersTo(of, said(["s1c0q1", null, "declined"]), nameOf)).toEqual({
    kind: "ready",
    responses: { first: { action: "decline" }, page: { action: "cancel" } },
    notes: [expect.stringContaining("did not want to answer")],
  });
  expect(answersTo(of, said(["s1c0q1", "Alpha"], ["s1c0q2", null, "withdrawn"]), nameOf)).toMatchObject({
    kind: "ready",
    responses: { first: { action: "cancel" } },
    notes: [expect.stringContaining("No one answered")],
  });
});

test.each<[FieldSchema, string, unknown]>([
  [{ type: "boolean" }, "No", { value: false }],
  [{ type: "number" }, "1.5", { value: 1.5 }],
  [{ type: "integer" }, "1.5", { problem: expect.any(String) }],
  [{ type: "string", format: "email" }, "nobody", { problem: expect.any(String) }],
  [{ type: "string", minLength: 3 }, "ab", { problem: expect.any(String) }],
  [{ type: "array", items: { enum: ["x", "y"] } }, "Y, x", { value: ["y", "x"] }],
  [{ type: "array", items: { enum: ["x", "y"] } }, "z", { problem: "it is not one of the choices" }],
  [{ type: "string", oneOf: [{ const: "k", title: "Kay" }] }, "kay", { value: "k" }],
])("%j takes %j as %j", (schema, words, value) => {
  expect(answerValue(schema, words)).toEqual(value);
});

test("a server's own regular expression is left to it: it may keep the worker busy for good", () => {
  const schema: FieldSchema = { type: "string", minLength: 2, pattern: "^(a+)+$" };
  const words = `${"a".repeat(40)}!`;
  expect(answerValue(schema, words)).toEqual({ value: words });
  expect(answerValue(schema, "a")).toHaveProperty("problem");
});
