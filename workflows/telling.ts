/** Tells watchers of messages as soon as they wait. One that is delivered before its turn comes is told of with that. */
import { condition } from "@temporalio/workflow";
import type { Guidance } from "../activities/contract/activities.ts";
import { queuedMessage } from "../activities/contract/queued-message.ts";
import { optionsOf, type Run } from "./actions.ts";
import { waiting } from "./inbox.ts";
import { perform } from "./proxies.ts";

/** Of a flood no more are told of before they are delivered. Source: what a person may queue (requirement 4.1). */
const MAX_TOLD = 100;
/** In one activity: its input stays far below the 64 KB guard. */
const MAX_AT_ONCE = 20;

/** Tells of a message that was just queued, with those that come meanwhile. */
export function tellQueued(run: Run, message: Pick<Guidance, "id" | "parts" | "by">): void {
  const { untold } = run;
  const position = waiting(run.state.inbox);
  if (untold.isOver || position > MAX_TOLD) return;
  untold.messages.push(queuedMessage(message, position));
  if (untold.isBusy) return;
  untold.isBusy = true;
  // What fails here, as in a run that is cancelled, is told with the delivery.
  tellAll(run)
    .catch(() => undefined)
    .finally(() => (untold.isBusy = false));
}

async function tellAll(run: Run): Promise<void> {
  const { untold, state } = run;
  await condition(() => run.policy !== undefined);
  while (untold.messages.length > 0 && !untold.isOver) {
    const waits = new Set(state.inbox.queue.map(({ id }) => id));
    const messages = untold.messages.splice(0, MAX_AT_ONCE).filter(({ id }) => waits.has(id));
    if (messages.length > 0 && run.policy?.tellsQueued && isOn(run))
      await perform("tellQueued", optionsOf(run), `tell of ${messages.length} waiting`, {
        step: state.step,
        messages,
      });
  }
}

/** What comes while the run closes waits for the next one. */
const isOn = ({ status }: Run) => status === "active" || status === "waiting";
