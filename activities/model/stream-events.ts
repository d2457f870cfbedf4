/** A stream of server-sent events, each of whose data is looked at on its way. */

export type StreamEvent = Record<string, unknown>;
/** What goes on in an event's place; undefined: nothing does. */
export type Repair = (event: StreamEvent) => StreamEvent | undefined;

/** The bytes of such a stream, mended. Lines that hold no JSON object, such as comments and `[DONE]`, go through as they are. */
export class MendedEvents {
  readonly #repair: Repair;
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  #rest = "";

  constructor(repair: Repair) {
    this.#repair = repair;
  }

  /** @returns the lines that are whole by now; none where there is none */
  take(bytes: Uint8Array): Uint8Array {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    const mended = lines.flatMap((line) => mend(line, this.#repair));
    return this.#encoder.encode(mended.length > 0 ? `${mended.join("\n")}\n` : "");
  }

  /** @returns what is left */
  end(): Uint8Array {
    const rest = this.#rest + this.#decoder.decode();
    return this.#encoder.encode(rest === "" ? "" : mend(rest, this.#repair).join("\n"));
  }
}

function mend(line: string, repair: Repair): string[] {
  if (!line.startsWith("data:")) return [line];
  const event = parsed(line.slice("data:".length));
  if (event === undefined) return [line];
  const mended = repair(event);
  if (mended === event) return [line];
  return mended === undefined ? [] : [`data: ${JSON.stringify(mended)}`];
}

function parsed(data: string): StreamEvent | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is StreamEvent {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
