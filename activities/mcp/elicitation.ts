/** Turns a server's requests into questions for a person, and the answers into the form that the server expects. */
import type { ElicitRequestFormParams, ElicitRequestURLParams } from "@modelcontextprotocol/client";
import { z } from "zod";
import { issueText } from "../config/issue-text.ts";
import { shorten } from "../text/cut.ts";
import { oneLine } from "../tools/paths.ts";
import type { EndedQuestion, AskedQuestions, ServerQuestion } from "./mcp.ts";

/** The most of a server's own words in a question. Chosen: as for its descriptions. */
const MAX_MESSAGE_CHARS = 2_000;
/** Longest address; a truncated one would be useless. Source: what browsers accept. */
const MAX_URL_CHARS = 8_000;
const MAX_ABOUT_CHARS = 60;
/** The most questions of one round. Chosen: a longer form belongs on a web page. */
const MAX_QUESTIONS = 20;

const ELICIT = "elicitation/create";
const DONE = "done";
const YES = "yes";

type Params = ElicitRequestFormParams | ElicitRequestURLParams;

/**
 * A server's requests as questions, in order.
 * @param nameOf the id of the question with a number, from 1
 * @returns why they cannot be asked, as a clause
 */
export function questionsFor(
  server: string,
  requests: Readonly<Record<string, unknown>>,
  nameOf: (index: number) => string,
): ServerQuestion[] | string {
  const questions: Omit<ServerQuestion, "id">[] = [];
  for (const [request, value] of Object.entries(requests)) {
    const { method, params } = value as { method?: string; params?: Params };
    if (method !== ELICIT || params === undefined)
      return `it asks its client for something that is not supported (${oneLine(String(method), 80)})`;
    const drafts =
      params.mode === "url"
        ? urlQuestion(server, params)
        : formQuestions(server, params as ElicitRequestFormParams);
    if (typeof drafts === "string") return drafts;
    questions.push(...drafts.map((question) => ({ ...question, request })));
  }
  if (questions.length > MAX_QUESTIONS)
    return `it asks a person ${questions.length} things at once; at most ${MAX_QUESTIONS} are asked`;
  return questions.map((question, index) => ({ id: nameOf(index + 1), ...question }));
}

type Draft = Omit<ServerQuestion, "id" | "request">;

function urlQuestion(server: string, { message, url }: ElicitRequestURLParams): Draft[] | string {
  if (url.length > MAX_URL_CHARS) return "the address that a person would open is too long";
  const text = [
    headline(server, message),
    `It wants you to open this address, which no one has opened or checked:`,
    url,
    `Answer ${DONE} when you have, or decline.`,
  ].join("\n");
  return [{ text, about: oneLine(message, MAX_ABOUT_CHARS), options: [DONE] }];
}

function formQuestions(server: string, { message, requestedSchema }: ElicitRequestFormParams): Draft[] {
  const { required = [] } = requestedSchema;
  const fields = Object.entries(requestedSchema.properties as Record<string, FieldSchema>);
  const about = oneLine(message, MAX_ABOUT_CHARS);
  if (fields.length === 0) return [{ text: headline(server, message), about, options: [YES] }];
  return fields.map(([field, schema], index) => {
    const options = optionsOf(schema);
    const isOptional = !required.includes(field);
    const text = [
      headline(server, message),
      fieldText(field, schema, fields.length > 1 ? `${index + 1} of ${fields.length}: ` : ""),
      ...(isOptional && fields.length > 1 ? ["Decline it to leave it out."] : []),
    ].join("\n");
    return {
      field,
      text,
      about,
      options,
      isOptional: isOptional && fields.length > 1 ? isOptional : undefined,
    };
  });
}

const headline = (server: string, message: string) =>
  `${server} asks: ${shorten(message, MAX_MESSAGE_CHARS)}`;

export type FormAnswers =
  /** Some questions have not been asked yet. */
  | { readonly kind: "open" }
  /** Answers that the form does not accept: these questions are asked again. */
  | { readonly kind: "unfit"; readonly questions: readonly ServerQuestion[] }
  | {
      readonly kind: "ready";
      /** What the server is sent. */
      readonly responses: Readonly<Record<string, object>>;
      /** The model's text for unanswered questions. */
      readonly notes: readonly string[];
    };

/** The answers in the server's form. @param answers by the questions' ids */
export function answersTo(
  { requests, questions }: AskedQuestions,
  answers: ReadonlyMap<string, EndedQuestion>,
  nameOf: (index: number) => string,
): FormAnswers {
  const unanswered = questions.find((question) => {
    const status = answers.get(question.id)?.status;
    return status !== undefined && status !== "answered" && !(status === "declined" && question.isOptional);
  });
  const isOver = unanswered !== undefined;
  if (!isOver && questions.some(({ id }) => !answers.has(id) || answers.get(id)?.status === "open"))
    return { kind: "open" };
  const unfit: ServerQuestion[] = [];
  const responses = Object.entries(requests).map(([request, value]): [string, object] => {
    const own = questions.filter((question) => question.request === request);
    if (isOver && own.some(({ id }) => answers.get(id)?.status !== "answered"))
      return [
        request,
        { action: own.includes(unanswered) && isDeclined(answers, unanswered) ? "decline" : "cancel" },
      ];
    const { params } = value as { params: Params };
    if (params.mode === "url") return [request, { action: "accept" }];
    const { properties } = (params as ElicitRequestFormParams).requestedSchema;
    const content: Record<string, unknown> = {};
    for (const question of own) {
      const { status, answer } = answers.get(question.id) ?? {};
      if (question.field === undefined || status !== "answered") continue;
      const read = answerValue(properties[question.field] as FieldSchema, answer ?? "");
      if ("problem" in read)
        unfit.push({
          ...question,
          id: nameOf(unfit.length + 1),
          text: `${oneLine(answer ?? "", 80)} is not accepted: ${read.problem}.\n${question.text}`,
        });
      else content[question.field] = read.value;
    }
    return [request, { action: "accept", content }];
  });
  if (unfit.length > 0 && !isOver) return { kind: "unfit", questions: unfit };
  const notes = isOver ? [noteOf(unanswered, answers.get(unanswered.id)?.status ?? "")] : [];
  return { kind: "ready", responses: Object.fromEntries(responses), notes };
}

const isDeclined = (answers: ReadonlyMap<string, EndedQuestion>, { id }: ServerQuestion) =>
  answers.get(id)?.status === "declined";

function noteOf({ text }: ServerQuestion, status: string): string {
  const end =
    status === "declined"
      ? "The person did not want to answer, and the server was informed. This is not consent"
      : "No one answered, and the server was informed. This is not consent";
  return `[${oneLine(text, 300)}\n${end}.]`;
}

/** A field's JSON schema, of the kinds that the protocol allows. */
export interface FieldSchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly enumNames?: readonly string[];
  readonly oneOf?: readonly Choice[];
  readonly items?: { readonly enum?: readonly string[]; readonly anyOf?: readonly Choice[] };
  readonly [more: string]: unknown;
}

interface Choice {
  readonly const: string;
  readonly title?: string;
}

/** Up to this many choices are shown as options; beyond that, people type their choice. */
const MAX_OPTIONS = 50;
const MAX_LABEL_CHARS = 200;
const MAX_WORDS_CHARS = 1_000;

const BOOLEAN = [
  { value: true, label: "yes" },
  { value: false, label: "no" },
];

function choicesOf({ type, enum: values, enumNames, oneOf, items }: FieldSchema) {
  if (type === "boolean") return BOOLEAN;
  const choices =
    oneOf ??
    items?.anyOf ??
    (values ?? items?.enum)?.map((value, index) => ({ const: value, title: enumNames?.[index] }));
  return choices?.map(({ const: value, title }) => ({
    value,
    label: oneLine(title ?? value, MAX_LABEL_CHARS),
  }));
}

/** The choices of a field that takes one of them; undefined if the answer is free text. */
function optionsOf(schema: FieldSchema): string[] | undefined {
  const choices = choicesOf(schema);
  return choices === undefined || schema.type === "array" || choices.length > MAX_OPTIONS
    ? undefined
    : choices.map(({ label }) => label);
}

/** What a person should fill in, and in which format. */
function fieldText(name: string, schema: FieldSchema, position: string): string {
  const { title, description, type } = schema;
  const fieldLabel = shorten([title ?? name, description].filter(Boolean).join(": "), MAX_WORDS_CHARS);
  const choices = optionsOf(schema) === undefined ? choicesOf(schema) : undefined;
  const of = choices?.map(({ label }) => label).join(", ");
  const how = [
    ...(type === "array" ? ["several, with commas between them"] : []),
    ...(type === "number" || type === "integer" ? ["a number"] : []),
    ...(of === undefined ? [] : [`of: ${shorten(of, MAX_WORDS_CHARS)}`]),
    ...(typeof schema["format"] === "string" ? [formatText(schema["format"])] : []),
    ...(schema.default === undefined ? [] : [`by default ${oneLine(JSON.stringify(schema.default), 80)}`]),
  ];
  return `${position}${fieldLabel}${how.length === 0 ? "" : ` (${how.join("; ")})`}`;
}

const formatText = (format: string) =>
  ({
    date: "as 2026-11-23",
    "date-time": "as 2026-11-23T09:00:00Z",
    uri: "an address",
    email: "an e-mail address",
  })[format] ?? oneLine(format, 40);

/** The field's value from a person's text, or what is wrong with the text, as a clause. */
export function answerValue(
  schema: FieldSchema,
  answerText: string,
): { readonly value: unknown } | { readonly problem: string } {
  const value = valueOf(schema, answerText.trim());
  if (value === undefined) return { problem: "it is not one of the choices" };
  try {
    const read = z.fromJSONSchema(withoutPatterns(schema)).safeParse(value);
    if (read.success) return { value };
    return { problem: shorten(read.error.issues.map(issueText).join("; "), 300) };
  } catch {
    // If the library does not know the schema, the server checks the value.
    return { value };
  }
}

/** A server's regular expression could run forever and block the worker, so it is left to the server. */
function withoutPatterns(schema: FieldSchema): Parameters<typeof z.fromJSONSchema>[0] {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === "pattern" ? undefined : value)),
  ) as Parameters<typeof z.fromJSONSchema>[0];
}

function valueOf(schema: FieldSchema, answerText: string): unknown {
  const choices = choicesOf(schema);
  const chosen = (answer: string) =>
    choices?.find(({ label, value }) =>
      [label, String(value)].some((name) => name.toLowerCase() === answer.toLowerCase()),
    )?.value;
  if (schema.type === "array") {
    const values = answerText
      .split(/[,\n]/)
      .map((answer) => answer.trim())
      .filter((answer) => answer !== "")
      .map((answer) => (choices === undefined ? answer : chosen(answer)));
    return values.includes(undefined) ? undefined : values;
  }
  if (choices !== undefined) return chosen(answerText);
  if (schema.type !== "number" && schema.type !== "integer") return answerText;
  // The schema refuses text that is not a number.
  return answerText !== "" && Number.isFinite(Number(answerText)) ? Number(answerText) : answerText;
}
