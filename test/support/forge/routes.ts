/** What the strict fakes of forges share: a table of routes, and what is refused before any of them. */
export interface Asked {
  readonly method: string;
  /** Below the API's address. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface Answered {
  readonly status: number;
  /** JSON, or a text as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A method and a path with its variable parts, and what is answered there. */
export type Route = readonly [
  method: string,
  path: RegExp,
  answer: (asked: Asked, parts: string[]) => Answered,
];

export const ok = (body: unknown, status = 200): Answered => ({ status, body });

export const refused = (status: number, message: string): Answered => ({ status, body: { message } });

export const notFound = refused(404, "Not Found");

/** As both forges count: `per_page` of 100 at most. */
export function paged<T>(rows: readonly T[], query: URLSearchParams): readonly T[] {
  const size = Math.min(100, Number(query.get("per_page") ?? 20));
  const page = Number(query.get("page") ?? 1);
  return rows.slice(size * (page - 1), size * page);
}

/** An unknown path is 404, as a known one with another method. */
export function answerOf(routes: readonly Route[], asked: Asked): Answered {
  for (const [method, path, answer] of routes) {
    const [, ...parts] = path.exec(asked.path) ?? [];
    if (method === asked.method && path.test(asked.path)) return answer(asked, parts);
  }
  return notFound;
}

/** A field that must be a text, of no more characters than a forge takes. @throws Refusal */
export function textField(fields: Asked["fields"], name: string, maxChars: number): string {
  const value = fields[name];
  if (typeof value !== "string" || value === "" || value.length > maxChars)
    throw new Refusal(refused(422, `Validation Failed: ${name}`));
  return value;
}

export class Refusal extends Error {
  readonly answer: Answered;
  constructor(answer: Answered) {
    super("refused");
    this.answer = answer;
  }
}
