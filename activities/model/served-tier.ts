/** Which tier of service answered: a provider may use another than was asked for, and bills that one. */
import { isJsonObject } from "../contract/json-object.ts";
import type { Repair, StreamEvent } from "./stream-events.ts";

export class ServedTier {
  #name: string | undefined;

  /** The provider's name for it; undefined if it reported none. */
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
 * On Responses in the response's object, on chat in each chunk, on messages in the usage. Until the answer is complete, the
 * requested tier is repeated, so the last one counts. Sources: OpenAI's and Anthropic's references of `service_tier`.
 */
function tierIn(event: StreamEvent): string | undefined {
  const { response, message } = event;
  const inMessage = isJsonObject(message) ? message["usage"] : undefined;
  const [found] = [event, response, inMessage, event["usage"]]
    .filter(isJsonObject)
    .flatMap(({ service_tier: tier }) => (typeof tier === "string" && tier !== "auto" ? [tier] : []));
  return found;
}
