/** Everything that was loaded for a step. */
import type { ModelStepInput } from "../contract/activities.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { Measure } from "../context/context-size.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { Session } from "../store/sessions.ts";
import type { ViewSize } from "../transcript/size.ts";
import type { TokenRatio } from "../contract/request-size.ts";

export interface StepContext {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly input: ModelStepInput;
  readonly rows: readonly StoredMessage[];
  readonly size: ViewSize;
  readonly measure: Measure;
  readonly tokenRatio: TokenRatio | undefined;
}
