/** Announces queued messages to watchers at once. A message that is delivered earlier is announced with its delivery. */
import { condition } from "@temporalio/workflow";
import { type Guidance, queuedMessage } from "../activities/contract/guidance.ts";
import { optionsOf, type Run } from "./run.ts";
import { waiting } from "./inbox.ts";
import { perform } from "./proxies.ts";

/** In a flood, all further messages are announced with their delivery. Source: what a person may queue (requirement 4.1). */
const MAX_ANNOUNCED = 100;
/** The most messages in one activity: its input stays far below the 64 KB guard. */
const MAX_AT_ONCE = 20;

/** Announces a message that was just queued, together with those that come meanwhile. */
export function announceQueued(run: Run, message: Pick<Guidance, "id" | "parts" | "by">): void {
  const { unannounced } = run;
  const position = waiting(run.state.inbox);
  if (unannounced.isOver || position > MAX_ANNOUNCED) return;
  unannounced.messages.push(queuedMessage(message, position));
  if (unannounced.isBusy) return;
  unannounced.isBusy = true;
  // If this fails, as in a cancelled run, the messages are announced with their delivery.
  announceAll(run)
    .catch(() => undefined)
    .finally(() => (unannounced.isBusy = false));
}

async function announceAll(run: Run): Promise<void> {
  const { unannounced, state } = run;
  await condition(() => run.policy !== undefined);
  while (unannounced.messages.length > 0 && !unannounced.isOver) {
    const waits = new Set(state.inbox.queue.map(({ id }) => id));
    const messages = unannounced.messages.splice(0, MAX_AT_ONCE).filter(({ id }) => waits.has(id));
    if (messages.length > 0 && isOn(run))
      await perform("announceQueued", optionsOf(run), `announce ${messages.length} queued`, {
        step: state.step,
        messages,
      });
  }
}

/** Messages that arrive while the run closes wait for the next run. */
const isOn = ({ status }: Run) => status === "active" || status === "waiting";
