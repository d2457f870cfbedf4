/** Turns a server's requests into questions for a person, and the answers into the form that the server expects. Pure. */
import type { ElicitRequestFormParams, ElicitRequestURLParams } from "@modelcontextprotocol/client";
import { shorten } from "../text/cut.ts";
import { oneLine } from "../tools/paths.ts";
import type { Asked, ServerQuestion } from "./call-state.ts";
import { answerValue, fieldText, optionsOf, type FieldSchema } from "./form-fields.ts";

/** The most of a server's own words in a question. Source: ours, as for its descriptions. */
const MAX_MESSAGE_CHARS = 2_000;
/** Longest address; a truncated one would be useless. Source: what browsers accept. */
const MAX_URL_CHARS = 8_000;
const MAX_ABOUT_CHARS = 60;
/** The most questions of one round. Source: ours; a longer form belongs on a web page. */
const MAX_QUESTIONS = 20;

const ELICIT = "elicitation/create";
const DONE = "done";
const YES = "yes";

type Params = ElicitRequestFormParams | ElicitRequestURLParams;

/** How a question ended, as stored in its row. */
export interface Answer {
  readonly status: string;
  readonly answer: string | null;
}

/**
 * A server's requests as questions, in order.
 * @param nameOf the id of the question with a number, from 1
 * @returns why they cannot be asked, as a clause
 */
export function questionsFor(
  server: string,
  requests: Readonly<Record<string, unknown>>,
  nameOf: (place: number) => string,
): ServerQuestion[] | string {
  const questions: Omit<ServerQuestion, "id">[] = [];
  for (const [request, value] of Object.entries(requests)) {
    const { method, params } = value as { method?: string; params?: Params };
    if (method !== ELICIT || params === undefined)
      return `it asks its client for something that is not supported (${oneLine(String(method), 80)})`;
    const asked =
      params.mode === "url"
        ? urlQuestion(server, params)
        : formQuestions(server, params as ElicitRequestFormParams);
    if (typeof asked === "string") return asked;
    questions.push(...asked.map((question) => ({ ...question, request })));
  }
  if (questions.length > MAX_QUESTIONS)
    return `it asks a person ${questions.length} things at once; at most ${MAX_QUESTIONS} are asked`;
  return questions.map((question, place) => ({ id: nameOf(place + 1), ...question }));
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
  return fields.map(([field, schema], place) => {
    const options = optionsOf(schema);
    const isOptional = !required.includes(field);
    const text = [
      headline(server, message),
      fieldText(field, schema, fields.length > 1 ? `${place + 1} of ${fields.length}: ` : ""),
      ...(isOptional && fields.length > 1 ? ["Decline it to leave it out."] : []),
    ].join("\n");
    return {
      field,
      text,
      about,
      ...(options === undefined ? {} : { options }),
      ...(isOptional && fields.length > 1 ? { isOptional } : {}),
    };
  });
}

const headline = (server: string, message: string) =>
  `${server} asks: ${shorten(message, MAX_MESSAGE_CHARS)}`;

export type Answered =
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
  { requests, questions }: Asked,
  answers: ReadonlyMap<string, Answer>,
  nameOf: (place: number) => string,
): Answered {
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

const isDeclined = (answers: ReadonlyMap<string, Answer>, { id }: ServerQuestion) =>
  answers.get(id)?.status === "declined";

function noteOf({ text }: ServerQuestion, status: string): string {
  const end =
    status === "declined"
      ? "The person did not want to answer, and the server was informed. This is not consent"
      : "No one answered, and the server was informed. This is not consent";
  return `[${oneLine(text, 300)}\n${end}.]`;
}
