/** The API: the library's operations, by method and path. Described in docs/openapi.yaml. */
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { prioritySchema, tenantSchema } from "../../activities/config/precedence.ts";
import { MAX_ANSWER_CHARS } from "../../activities/contract/questions.ts";
import type { Longhaul } from "../library/types.ts";
import { parse, readBody } from "./http.ts";

interface Call {
  readonly client: Longhaul;
  /** The user of its token, if that has a name. */
  readonly user: string | undefined;
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  /** The path's variable parts. */
  readonly names: readonly string[];
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: RegExp;
  /** Default: 200. */
  readonly status?: number;
  readonly run: (call: Call) => Promise<unknown>;
}

const STATUSES = ["active", "waiting", "completed", "failed", "cancelled", "max_steps"] as const;
const MAX_LISTED = 200;

const listing = z.strictObject({
  limit: z.coerce.number().int().min(1).max(MAX_LISTED).optional(),
  status: z.enum(STATUSES).optional(),
  parent: z.string().optional(),
  all: z.stringbool().optional(),
});

/** Paths of this machine are refused: the command or the library uploads a folder. */
const newSession = z.strictObject({
  task: z.string(),
  id: z.string().optional(),
  model: z.string().optional(),
  repo: z.string().optional(),
  ref: z.string().optional(),
  maxSteps: z.number().int().min(1).optional(),
  maxCostUsd: z.number().positive().optional(),
  questions: z.enum(["ask", "default", "deny"]).optional(),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  priority: prioritySchema.optional(),
  tenant: tenantSchema.optional(),
});

const file = z.strictObject({ name: z.string().min(1).max(200), data: z.base64() });
const message = z.strictObject({
  text: z.string(),
  id: z.string().optional(),
  files: z.array(file).max(20).optional(),
});
const interrupt = z.strictObject({ text: z.string().optional() });
const nothing = z.strictObject({});

const answer = z
  .strictObject({
    question: z.string().optional(),
    text: z.string().max(MAX_ANSWER_CHARS).optional(),
    option: z.union([z.number().int().min(1), z.string()]).optional(),
    action: z.enum(["allow", "allow-always", "deny", "decline"]).optional(),
    by: z.string().max(100).optional(),
  })
  .refine(({ text, option, action }) => text !== undefined || option !== undefined || action !== undefined, {
    error: "No answer was given: send text, option or action.",
  });

/** Without undefined fields, which the library's types do not allow. */
type Given<T> = { [Name in keyof T]: Exclude<T[Name], undefined> };
const given = <T extends object>(value: T): Given<T> =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Given<T>;

const session = (rest = "") => new RegExp(`^/v1/sessions/([^/]+)${rest}$`);
const batch = (rest = "") => new RegExp(`^/v1/batches/([^/]+)${rest}$`);
const schedule = (verb: string) => new RegExp(`^/v1/schedules/([^/]+)/${verb}$`);
const first = ({ names: [name = ""] }: Call) => name;

export const EVENTS_PATH = session("/events");

export const routes: readonly Route[] = [
  {
    method: "GET",
    path: /^\/v1\/sessions$/,
    run: ({ client, query }) => client.list(given(parse(listing, Object.fromEntries(query)))),
  },
  {
    method: "POST",
    path: /^\/v1\/sessions$/,
    status: 201,
    run: async ({ client, request }) => {
      const { task, ...options } = await readBody(request, newSession);
      return client.start(task, given(options));
    },
  },
  { method: "GET", path: session(), run: (call) => call.client.status(first(call)) },
  { method: "GET", path: /^\/v1\/questions$/, run: ({ client }) => client.questions() },
  { method: "GET", path: session("/questions"), run: (call) => call.client.questions(first(call)) },
  { method: "GET", path: session("/diff"), run: (call) => call.client.diff(first(call)) },
  {
    method: "GET",
    path: session("/export"),
    run: (call) => {
      const format = z.enum(["own", "atif"]).default("own");
      return call.client.export(first(call), parse(format, call.query.get("format") ?? undefined));
    },
  },
  {
    method: "POST",
    path: session("/messages"),
    run: async (call) => {
      const { text, id, files } = await readBody(call.request, message);
      const images = files?.map(({ name, data }) => ({ name, bytes: Buffer.from(data, "base64") }));
      return call.client.say(first(call), text, given({ id, images }));
    },
  },
  {
    method: "DELETE",
    path: session("/messages/([^/]+)"),
    run: async ({ client, names: [id = "", messageId = ""] }) => {
      await client.unsay(id, messageId);
      return { withdrawn: true };
    },
  },
  {
    method: "POST",
    path: session("/answers"),
    run: async (call) => {
      const said = given(await readBody(call.request, answer));
      // Users answer only in their own name.
      return call.client.answer(first(call), call.user === undefined ? said : { ...said, by: call.user });
    },
  },
  {
    method: "POST",
    path: session("/interrupt"),
    run: async (call) => call.client.interrupt(first(call), (await readBody(call.request, interrupt)).text),
  },
  {
    method: "POST",
    path: session("/cancel"),
    run: async (call) => {
      await readBody(call.request, nothing);
      return call.client.cancel(first(call));
    },
  },
  // A batch is started from a file and a schedule from its settings, where these are: by the command or the library.
  { method: "GET", path: /^\/v1\/batches$/, run: ({ client }) => client.batches.list() },
  { method: "GET", path: batch(), run: (call) => call.client.batches.get(first(call)) },
  {
    method: "POST",
    path: batch("/cancel"),
    run: async (call) => {
      await readBody(call.request, nothing);
      return call.client.batches.cancel(first(call));
    },
  },
  { method: "GET", path: /^\/v1\/schedules$/, run: ({ client }) => client.schedules.list() },
  ...(["pause", "resume"] as const).map((verb): Route => ({
    method: "POST",
    path: schedule(verb),
    run: async (call) => {
      await readBody(call.request, nothing);
      await call.client.schedules[verb](first(call));
      return { name: first(call), state: verb === "pause" ? "paused" : "active" };
    },
  })),
  {
    method: "POST",
    path: schedule("run"),
    run: async (call) => {
      await readBody(call.request, nothing);
      return call.client.schedules.run(first(call));
    },
  },
];
