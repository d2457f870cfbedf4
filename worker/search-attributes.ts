/** Our search attributes, registered if the namespace lacks them and the server allows it. */
import type { NativeConnection } from "@temporalio/worker";
import type { Logger } from "./logger.ts";
import { reasonOf } from "../activities/contract/reason-of.ts";

export const SEARCH_ATTRIBUTES = [
  "AgentPhase",
  "AgentModel",
  "AgentOutcome",
  "AgentBatch",
  "AgentTenant",
] as const;

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;

/** @returns false if they are not there and could not be added: a workflow task that used one would fail */
export async function hasSearchAttributes(
  connection: NativeConnection,
  namespace: string,
  logger: Logger,
): Promise<boolean> {
  const { operatorService } = connection;
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = SEARCH_ATTRIBUTES.filter((name) => customAttributes?.[name] === undefined);
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
