/** A refused request. Each wire has its own form for it (error-body.ts). */

/** What went wrong, independent of the wire. */
export interface Fault {
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
  readonly param: string | null;
  /** The wait that the server asks for, in whole or fractional seconds. */
  readonly retryAfterSeconds?: number;
}

/** Thrown by parsing and checking; becomes the HTTP answer. */
export class Refusal extends Error implements Fault {
  override readonly name = "Refusal";
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor(status: number, message: string, code: string | null = null, param: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

/** A 400. */
export function invalid(message: string, code: string | null = null, param: string | null = null): Refusal {
  return new Refusal(400, message, code, param);
}

/** OpenAI's 400s that several checks use, in its words. */
export function invalidValue(message: string, param: string): Refusal {
  return invalid(message, "invalid_value", param);
}

export function notOneOf(found: unknown, values: readonly string[], param: string): Refusal {
  const quoted = values.map((value) => `'${value}'`);
  const list =
    quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}`;
  const foundText = typeof found === "string" ? found : JSON.stringify(found);
  return invalidValue(`Invalid value: '${foundText}'. Supported values are: ${list}.`, param);
}

export function wrongType(path: string, expected: string): Refusal {
  return invalid(`Invalid type for '${path}': expected ${expected}.`, "invalid_type", path);
}

export function missing(parameter: string, param = parameter): Refusal {
  return invalid(`Missing required parameter: '${parameter}'.`, "missing_required_parameter", param);
}

export function tooLong(param: string, most: number, chars: number): Refusal {
  return invalid(
    `Invalid '${param}': string too long. Expected a string with maximum length ${most}, but got a string with length ${chars} instead.`,
    "string_above_max_length",
    param,
  );
}
