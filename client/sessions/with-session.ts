/** A session that a command works on: its services and row, its settings and running workflow, and who acted on it. */
import { shellWord } from "../console/format.ts";
import { type SessionRow, readFigures } from "../../activities/store/reading.ts";
import { isSetupOff } from "../config/config.ts";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { openServices, type Services } from "../connect/connection.ts";
import { findServices, checkSettings } from "../setup/services.ts";
import { findByReference, notFound } from "../lookup/find-by-reference.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { runConfigSchema, type RunConfig } from "../../activities/config/agent-config.ts";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { notPossible, type ClientError } from "../console/errors.ts";
import type { WorkflowHandle } from "@temporalio/client";
import { unlessGone } from "../connect/describe-run.ts";
import { requireAccess } from "../connect/readiness.ts";
import type { NewEvent } from "../../activities/store/event.ts";
import { appendEvents } from "../../activities/store/events.ts";

/** Help text of the argument that names a session. */
export const SESSION = "session: its id, the beginning of it, or @last";

const say = (line: string) => void process.stderr.write(`${line}\n`);

/**
 * Opens the services while `use` runs. This installation's own services are restarted if `longhaul down` or a shutdown of
 * the machine ended them.
 * @throws ServiceMissing
 */
export async function withServices<T>(
  use: (services: Services) => Promise<T>,
  open: () => Promise<Services> = openOrBringBack,
): Promise<T> {
  checkSettings();
  const services = await open();
  try {
    return await use(services);
  } finally {
    await services.close();
  }
}

async function openOrBringBack(): Promise<Services> {
  try {
    return await openServices(findServices(), say);
  } catch (error) {
    if (!(error instanceof ServiceMissing) || isSetupOff()) throw error;
    const { hasOwnServices, prepareStores } = await import("../setup/up.ts");
    if (!hasOwnServices()) throw error;
    return openServices(await prepareStores({ say }), say);
  }
}

/**
 * For requests that a worker must handle: a missing one, or one with other settings than this shell, is started first.
 * @param reference of the session, if its model will be asked
 * @throws SettingMissing if the worker would lack a key that the session needs, or a protection
 */
async function openWithWorker(reference?: string): Promise<Services> {
  if (isSetupOff()) return openServices(findServices(), say);
  const [{ lacksWorker, prepare }, { SettingMissing }] = await Promise.all([
    import("../setup/up.ts"),
    import("../setup/state.ts"),
  ]);
  if (!(await lacksWorker())) return openOrBringBack();
  try {
    return await openServices(await prepare({ say, reference }), say);
  } catch (error) {
    if (!(error instanceof ServiceMissing) || (reference !== undefined && error instanceof SettingMissing))
      throw error;
    // Temporal accepts a cancel even while Docker is down.
    say(`No worker could be started: ${error.message}`);
    return openOrBringBack();
  }
}

/**
 * Brings up what is missing and a worker first, unless those are elsewhere (`--no-setup`, LONGHAUL_NO_SETUP=1).
 * @throws ServiceMissing
 */
export function withPreparedServices<T>(
  flags: { readonly setup: boolean; readonly image?: string },
  say: (line: string) => void,
  use: (services: Services) => Promise<T>,
): Promise<T> {
  return withServices(use, async () => {
    if (!flags.setup || isSetupOff()) return openServices(findServices(), say);
    const { prepare } = await import("../setup/up.ts");
    const image = flags.image === undefined ? {} : { image: flags.image };
    return openServices(await prepare({ say, ...image }), say);
  });
}

/**
 * Opens the services and finds the session; what follows uses the row's id, which is the whole one.
 * @param reference an id, the beginning of one, or `@last`
 * @throws ClientError (impossible) if there is no such session
 */
export function withSession<T>(
  reference: string,
  use: (services: Services, row: SessionRow) => Promise<T>,
): Promise<T> {
  return withServices(async (services) => use(services, await requireSession(services, reference)));
}

/** As `withSession`, for requests that only a worker can handle. */
export function withWorkingSession<T>(
  reference: string,
  use: (services: Services, row: SessionRow) => Promise<T>,
): Promise<T> {
  return withServices(
    async (services) => use(services, await requireSession(services, reference)),
    () => openWithWorker(reference),
  );
}

/** As `withServices`, for requests that only a worker can handle without a model: those that end work. */
export function withWorkingServices<T>(use: (services: Services) => Promise<T>): Promise<T> {
  return withServices(use, () => openWithWorker());
}

/** @throws ClientError (impossible) if there is no such session */
export async function requireSession(
  services: Pick<Services, "store">,
  reference: string,
): Promise<SessionRow> {
  const row = await unlessTableMissing(() => findByReference(services.store.db, reference));
  // A new database: no session was started.
  if (row === undefined) throw notFound(reference, []);
  return row;
}

/** A session's settings as its row has them. @throws ClientError (impossible) for some that this version does not take */
export function parseSettings({ id, config }: Pick<SessionRow, "id" | "config">): RunConfig {
  const parsed = runConfigSchema.safeParse(config);
  if (parsed.success) return parsed.data;
  const wrong = issueTexts(parsed.error, runConfigSchema);
  throw notPossible(
    `The session ${id} has settings that this version does not accept.\n${wrong.join("\n")}`,
    "If a newer version stored them, update this one. Otherwise start the task again with other settings; `longhaul pull` copies the session's files.",
  );
}

/**
 * Runs an operation on a session's running workflow.
 * @throws ClientError (impossible) if it does not run, (missing) as `requireAccess`
 */
export async function withRunning<T>(
  services: Services,
  row: SessionRow,
  use: (handle: WorkflowHandle) => Promise<T>,
): Promise<T> {
  await requireAccess(services, row.id);
  const client = await services.temporal.client();
  const result = await unlessGone(async () => ({ value: await use(client.workflow.getHandle(row.id)) }));
  if (result === undefined) throw notRunning(row);
  return result.value;
}

export function notRunning({ id, status }: SessionRow): ClientError {
  // A run that was ended in Temporal itself could not store its end.
  const how = status === "active" || status === "waiting" ? "its run was ended in Temporal" : status;
  return notPossible(
    `${id} is not running (${how}).`,
    `Resume it with: longhaul say ${shellWord(id)} "go on"`,
  );
}

type PersonsAction =
  | "interrupt"
  | "cancel"
  | "pull"
  | "apply"
  | "compact"
  | "undo-compaction"
  | "retry"
  | "follow"
  | "unfollow"
  | "purge"
  | "wake";

/** Writes `person:acted`; does nothing without a user. */
export async function recordAction(
  { store, user }: Pick<Services, "store" | "user">,
  row: Pick<SessionRow, "id" | "epoch">,
  action: PersonsAction,
): Promise<void> {
  if (user === undefined) return;
  await recordNow({ store }, row, (step) => ({ type: "person:acted", step, data: { action, by: user } }));
}

/** Writes an event at the session's current step. */
export async function recordNow(
  { store }: Pick<Services, "store">,
  { id, epoch }: Pick<SessionRow, "id" | "epoch">,
  eventAt: (step: number) => NewEvent,
): Promise<void> {
  const step = (await readFigures(store.db, [id])).get(id)?.step ?? 0;
  await appendEvents(store.db, id, epoch, [eventAt(step)]);
}
