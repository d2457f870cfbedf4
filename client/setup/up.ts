/** What `run`, `start`, `up`, `down` and `worker` do with this machine's services. */
import { bringDown, bringUp, type LocalServices, type Need, type Say } from "./services.ts";
import { ensureWorker, runWorker } from "./worker-process.ts";

const ALL: readonly Need[] = ["postgres", "temporal", "docker", "image", "model"];

export interface LocalOptions {
  readonly say: Say;
  readonly home?: string;
}

/** Everything a task needs, running and left running. @throws ServiceMissing */
export async function prepare(options: LocalOptions): Promise<LocalServices> {
  const services = await bringUp({ ...options, need: ALL });
  await ensureWorker({ ...options, services });
  return services;
}

/** `longhaul up`: services and a worker until SIGINT or SIGTERM, then both are ended. */
export async function up(options: LocalOptions): Promise<number> {
  const services = await bringUp({ ...options, need: ALL });
  const ui = services.uiUrl === undefined ? "" : ` The Web UI is at ${services.uiUrl}.`;
  options.say(
    `Everything is running.${ui} Ctrl-C ends the worker and these services; data stays in .longhaul.`,
  );
  try {
    return await runWorker({ services });
  } finally {
    await bringDown(options);
  }
}

/** `longhaul down`: ends the worker and the services that we started. */
export async function down(options: LocalOptions): Promise<number> {
  const { ended } = await bringDown(options);
  options.say(
    ended.length === 0
      ? "Nothing started by longhaul was running."
      : `Stopped: ${ended.join(", ")}. Data stays in .longhaul.`,
  );
  return 0;
}
