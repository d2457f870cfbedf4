/** A stream of server-sent events, each of whose data is looked at on its way. */

export type StreamEvent = Record<string, unknown>;
/** What goes on in an event's place; undefined: nothing does. */
export type Repair = (event: StreamEvent) => StreamEvent | undefined;

/** Lines that hold no JSON object, such as comments and `[DONE]`, go through as they are. */
export function mapEvents(repair: Repair): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  return new TransformStream({
    transform(bytes, controller) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      const mended = lines.flatMap((line) => mend(line, repair));
      if (mended.length > 0) controller.enqueue(encoder.encode(`${mended.join("\n")}\n`));
    },
    flush(controller) {
      const mended = mend(rest + decoder.decode(), repair);
      if (rest !== "" && mended.length > 0) controller.enqueue(encoder.encode(mended.join("\n")));
    },
  });
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
