/** Temporal's runtime of this process: errors only. Safe to call often; the first call decides. */
import { DefaultLogger, Runtime } from "@temporalio/worker";

let installed = false;

export function quietRuntime(): void {
  if (!installed) Runtime.install({ logger: new DefaultLogger("ERROR") });
  installed = true;
}
