/** The API: the library's operations, by method and path. Described in docs/openapi.yaml. */
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { prioritySchema, tenantSchema } from "../../activities/config/precedence.ts";
import { MAX_ANSWER_CHARS } from "../../activities/contract/questions.ts";
import type { Longhaul } from "../library/types.ts";
import { parse, readBody } from "./http.ts";

interface Call<Body> {
  readonly client: Longhaul;
  /** The user of its token, if that has a name. */
  readonly user: string | undefined;
  readonly body: Body;
  readonly query: URLSearchParams;
  /** The path's variable parts. */
  readonly names: readonly string[];
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: RegExp;
  readonly status: number;
  readonly run: (call: Omit<Call<never>, "body"> & { readonly request: IncomingMessage }) => Promise<unknown>;
}

const STATUSES = ["active", "waiting", "completed", "failed", "cancelled", "max_steps"] as const;
const MAX_LISTED = 200;
const LIMIT = `expected a whole number from 1 to ${MAX_LISTED}, such as 50`;

const listing = z.strictObject({
  limit: z.coerce
    .number({ error: LIMIT })
    .int({ error: LIMIT })
    .min(1, { error: LIMIT })
    .max(MAX_LISTED, { error: LIMIT })
    .optional(),
  status: z.enum(STATUSES).optional(),
  parent: z.string().optional(),
  all: z.stringbool({ error: "expected true or false" }).optional(),
});

const NO_PATHS = "the server takes no path of its machine: name a repository by https or ssh";
/** Wrong addresses are left to the library, which says what is wrong. */
const isElsewhere = (repo: string): boolean => URL.parse(repo)?.protocol !== "file:";

/** Paths of this machine are refused: the command or the library uploads a folder. */
const newSession = z.strictObject({
  task: z.string(),
  id: z.string().optional(),
  model: z.string().optional(),
  repo: z.string().refine(isElsewhere, { error: NO_PATHS }).optional(),
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
    error: "no answer was given: send text, option or action",
  });

const session = (rest = "") => new RegExp(`^/v1/sessions/([^/]+)${rest}$`);
const batch = (rest = "") => new RegExp(`^/v1/batches/([^/]+)${rest}$`);
const schedule = (verb: string) => new RegExp(`^/v1/schedules/([^/]+)/${verb}$`);

export const EVENTS_PATH = session("/events");

type Run<Body> = (call: Call<Body>, first: string) => Promise<unknown>;

/** @param run gets the path's first variable part beside the call */
const get = (path: RegExp, run: Run<undefined>): Route => ({
  method: "GET",
  path,
  status: 200,
  run: (call) => run({ ...call, body: undefined }, call.names[0] ?? ""),
});

const post = <Body>(path: RegExp, schema: z.ZodType<Body>, run: Run<Body>, status = 200): Route => ({
  method: "POST",
  path,
  status,
  run: async ({ request, ...call }) =>
    run({ ...call, body: await readBody(request, schema) }, call.names[0] ?? ""),
});

export const routes: readonly Route[] = [
  get(/^\/v1\/sessions$/, ({ client, query }) => client.list(parse(listing, Object.fromEntries(query)))),
  post(
    /^\/v1\/sessions$/,
    newSession,
    ({ client, body: { task, ...options } }) => client.start(task, options),
    201,
  ),
  get(session(), ({ client }, id) => client.status(id)),
  get(/^\/v1\/questions$/, ({ client }) => client.questions()),
  get(session("/questions"), ({ client }, id) => client.questions(id)),
  get(session("/diff"), ({ client }, id) => client.diff(id)),
  get(session("/export"), ({ client, query }, id) => {
    const format = z.enum(["own", "atif"]).default("own");
    return client.export(id, parse(format, query.get("format") ?? undefined, "format"));
  }),
  post(session("/messages"), message, ({ client, body: { text, id: messageId, files } }, id) => {
    const images = files?.map(({ name, data }) => ({ name, bytes: Buffer.from(data, "base64") }));
    return client.say(id, text, { id: messageId, images });
  }),
  {
    method: "DELETE",
    path: session("/messages/([^/]+)"),
    status: 200,
    run: async ({ client, names: [id = "", messageId = ""] }) => {
      await client.unsay(id, messageId);
      return { withdrawn: true };
    },
  },
  // Users answer only in their own name.
  post(session("/answers"), answer, ({ client, user, body }, id) =>
    client.answer(id, user === undefined ? body : { ...body, by: user }),
  ),
  post(session("/interrupt"), interrupt, ({ client, body }, id) => client.interrupt(id, body.text)),
  post(session("/cancel"), nothing, ({ client }, id) => client.cancel(id)),
  // A batch needs a file and a schedule needs settings, which are on the machine of the command or the library.
  get(/^\/v1\/batches$/, ({ client }) => client.batches.list()),
  get(batch(), ({ client }, name) => client.batches.get(name)),
  post(batch("/cancel"), nothing, ({ client }, name) => client.batches.cancel(name)),
  get(/^\/v1\/schedules$/, ({ client }) => client.schedules.list()),
  ...(["pause", "resume"] as const).map((verb) =>
    post(schedule(verb), nothing, async ({ client }, name) => {
      await client.schedules[verb](name);
      return { name, state: verb === "pause" ? "paused" : "active" };
    }),
  ),
  post(schedule("run"), nothing, ({ client }, name) => client.schedules.run(name)),
];
