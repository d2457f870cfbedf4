/** Which tier of service answered: a provider may serve another than was asked for, and bills that. */
import { isRecord, type Repair, type StreamEvent } from "./stream-events.ts";

export class ServedTier {
  #name: string | undefined;

  /** As the provider calls it; undefined if it did not say. */
  get name(): string | undefined {
    return this.#name;
  }

  /** Looks at each event before it is repaired. */
  around(repair: Repair | undefined): Repair {
    return (event) => {
      this.#name = tierIn(event) ?? this.#name;
      return repair === undefined ? event : repair(event);
    };
  }
}

/**
 * On Responses in the response's object, on chat in each chunk, on messages in the usage. What was asked for is repeated until
 * the answer is complete, so the last word counts. Sources: OpenAI's and Anthropic's references of `service_tier`.
 */
function tierIn(event: StreamEvent): string | undefined {
  const { response, message } = event;
  const inMessage = isRecord(message) ? message["usage"] : undefined;
  const [found] = [event, response, inMessage, event["usage"]]
    .filter(isRecord)
    .flatMap(({ service_tier: tier }) => (typeof tier === "string" && tier !== "auto" ? [tier] : []));
  return found;
}
