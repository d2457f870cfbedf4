/** Our search attributes, registered if the namespace lacks them and the server allows it. */
import type { Connection } from "@temporalio/client";
import { reasonOf } from "../activities/contract/errors.ts";

export const SEARCH_ATTRIBUTES = [
  "AgentPhase",
  "AgentModel",
  "AgentOutcome",
  "AgentBatch",
  "AgentTenant",
] as const;

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;

/** @returns whether one of them is of another type, and the names of those that are not there */
export function lookAtAttributes(known: Readonly<Record<string, unknown>> | null | undefined) {
  const other = SEARCH_ATTRIBUTES.filter((name) => ![undefined, KEYWORD].includes(typeOf(known?.[name])));
  return { missing: SEARCH_ATTRIBUTES.filter((name) => known?.[name] === undefined), other };
}

const typeOf = (type: unknown): number | undefined => (type === undefined ? undefined : Number(type));

/** @returns false if they are not there and could not be added: a workflow task that used one would fail */
export async function hasSearchAttributes(
  { operatorService }: Pick<Connection, "operatorService">,
  namespace: string,
  logger: { warn(fields: { readonly reason: string }, text: string): void },
): Promise<boolean> {
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const { missing, other } = lookAtAttributes(customAttributes);
    if (other.length > 0)
      throw new Error(`${other.join(", ")} there ${other.length === 1 ? "is" : "are"} of another type`);
    if (missing.length > 0) {
      const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
      await operatorService.addSearchAttributes({ namespace, searchAttributes });
    }
    return true;
  } catch (error) {
    // Temporal Cloud has no operator service, and some clusters reserve it for their admins.
    const reason = reasonOf(error);
    logger.warn({ reason }, `search attributes are left out: add ${SEARCH_ATTRIBUTES.join(", ")} as Keyword`);
    return false;
  }
}
