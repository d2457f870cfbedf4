/** The size of a session's next request where it decides: by the provider's own count, if that is free. */
import type { Budget } from "../contract/budget.ts";
import type { ContextSize } from "../contract/request-size.ts";
import { buildMessages, type Prefix } from "../context/request.ts";
import { modelDeadlines } from "../config/run-policy.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { Session } from "../store/sessions.ts";

/**
 * How far an estimate may be from a size and still be on the wrong side of it: if it continues a bill, and without one. Source:
 * requirement 9 (p95 of the error 3 %; pure estimates up to 20 % on tool output).
 */
const ERROR = { billed: 0.03, pure: 0.2 };

function mayBeWrong({ used, estimated }: ContextSize, sizeTokens: number): boolean {
  return Math.abs(used - sizeTokens) <= sizeTokens * (estimated ? ERROR.pure : ERROR.billed);
}

interface Counting {
  readonly deps: Pick<AgentDeps, "model" | "store">;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly prefix: Prefix;
  readonly rows: readonly StoredMessage[];
}

/** Before a request is sent: counted if the estimate is so near the largest one that the model takes that it may be wrong. */
export async function sizeAtLimit(
  counting: Counting,
  context: ContextSize,
  { limitTokens }: Budget,
): Promise<ContextSize> {
  return mayBeWrong(context, limitTokens) ? counted(counting, context) : context;
}

/**
 * Before a summary is made because the trigger is reached: counted if the estimate continues no bill. Where it does, the error is
 * worth less than a step, unless the trigger is the largest request itself.
 */
export async function sizeAtTrigger(
  counting: Counting,
  context: ContextSize,
  { triggerTokens, limitTokens }: Budget,
): Promise<ContextSize> {
  const decides = context.estimated || triggerTokens >= limitTokens;
  return decides && context.used >= triggerTokens && mayBeWrong(context, triggerTokens)
    ? counted(counting, context)
    : context;
}

async function counted(
  { deps, scope, session: { id, config }, prefix, rows }: Counting,
  context: ContextSize,
): Promise<ContextSize> {
  if (deps.model.count === undefined) return context;
  const { messages } = await buildMessages(deps.store.db, rows, config.input, config.model);
  const tokens = await deps.model.count(
    {
      target: config,
      system: prefix.system,
      messages,
      tools: prefix.tools,
      maxOutputTokens: config.maxOutput,
      cacheKey: id,
      deadlines: modelDeadlines(config, scope.elapsedMs()),
    },
    scope.signal,
  );
  return tokens === undefined ? context : { ...context, used: tokens, estimated: false };
}
