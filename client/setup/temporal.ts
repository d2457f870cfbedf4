/** Our own Temporal development server, with its Web UI and a database file. */
import { join } from "node:path";
import { loadClientConfigProfile } from "@temporalio/envconfig";
import { probeTemporal } from "../../temporal/probe.ts";
import { PATIENT, within } from "../../temporal/patience.ts";
import { freePort } from "./processes.ts";
import { lacksNamespace } from "../../temporal/service-missing.ts";
import { answersWhileAlive, startService } from "./start-service.ts";
import { readState, remember, rememberFound, type RunningService, type SetUp } from "./state.ts";
import { cacheFolder, temporalBinary } from "./temporal-binary.ts";
import { SEARCH_ATTRIBUTES } from "../../temporal/search-attributes.ts";

export interface TemporalPlace {
  readonly address: string;
  readonly uiUrl: string | undefined;
}

export const TEMPORAL_PORT = 7_233;
export const TEMPORAL_UI_PORT = 8_233;

/**
 * By default, the server reads its queue at most 20 times a second, which slows a single agent down to 100 ms per activity;
 * with the first setting, 18 ms. It also splits each task queue into four partitions: what waits in one that no poll has reached
 * is handed out only after 1.2 s, which every second start of a worker waited for (2.25 s to the first model call instead of
 * 0.9), and a step took 33 instead of 30 ms. One partition serves hundreds of tasks a second. Source: measured 2026-11.
 */
export const DYNAMIC_CONFIG = [
  "history.transferProcessorMaxPollRPS=1000",
  "system.enableActivityEagerExecution=true",
  "matching.numTaskqueueReadPartitions=1",
  "matching.numTaskqueueWritePartitions=1",
] as const;

/**
 * For servers that live only as long as a test run. Without a sync for each commit, 1,000 signals took 7.6 s instead of 26
 * and half the CPU time; a killed server still keeps its histories. Source: measured 2026-11.
 */
export const NOT_DURABLE = ["--sqlite-pragma=synchronous=OFF"] as const;

/** The address from the environment or a `temporal.toml` profile, if one is configured. */
export function configuredTemporal(): string | undefined {
  return loadClientConfigProfile().address;
}

/** @throws ServiceMissing */
export async function ensureTemporal(setUp: SetUp): Promise<TemporalPlace> {
  const { home, ports, say } = setUp;
  const configured = configuredTemporal();
  if (ports === "fixed" && configured !== undefined) {
    await probeTemporal(configured, { ...PATIENT, say });
    rememberFound(home, "temporal", configured);
    return { address: configured, uiUrl: undefined };
  }
  const ours = readState(home).services.temporal;
  if (ours !== undefined && (await ownAnswers(ours))) {
    return { address: ours.address, uiUrl: ours.uiUrl };
  }
  const standard = `127.0.0.1:${TEMPORAL_PORT}`;
  if (ports === "fixed" && (await answers(standard))) {
    // Ours has ended; its address would be preferred.
    remember(home, "temporal", undefined);
    if (readState(home).found.temporal !== standard)
      say(`Using the Temporal server that runs at ${standard}.`);
    rememberFound(home, "temporal", standard);
    return { address: standard, uiUrl: `http://127.0.0.1:${TEMPORAL_UI_PORT}` };
  }
  return start(setUp, await temporalBinary({ cache: cacheFolder(), say }));
}

async function start({ home, ports, say }: SetUp, binary: string): Promise<TemporalPlace> {
  const fixed = ports === "fixed";
  const port = await freePort(fixed ? TEMPORAL_PORT : 0);
  const uiPort = await freePort(fixed ? TEMPORAL_UI_PORT : 0);
  const address = `127.0.0.1:${port}`;
  const uiUrl = `http://127.0.0.1:${uiPort}`;
  await startService({
    home,
    name: "temporal",
    title: "Temporal",
    command: binary,
    args: [
      "server",
      "start-dev",
      "--ip=127.0.0.1",
      `--port=${port}`,
      `--ui-port=${uiPort}`,
      `--db-filename=${join(home, "temporal.db")}`,
      "--log-level=warn",
      ...(fixed ? [] : NOT_DURABLE),
      ...DYNAMIC_CONFIG.flatMap((value) => ["--dynamic-config-value", value]),
      ...SEARCH_ATTRIBUTES.flatMap((name) => ["--search-attribute", `${name}=Keyword`]),
    ],
    address,
    facts: { uiUrl },
    probe: () => probe(address),
    timeoutMs: 60_000,
    otherwise: "set TEMPORAL_ADDRESS to a running server",
  });
  rememberFound(home, "temporal", undefined);
  say(`Temporal runs at ${address}, its Web UI at ${uiUrl} (database in .longhaul/temporal.db).`);
  return { address, uiUrl };
}

/** Chosen: a guess: an interrupted set-up may leave a server that is only starting. */
const STARTING_MS = 3_000;

const probe = (address: string) => probeTemporal(address, within(1_500));

/** @throws ServiceMissing if a server lacks the namespace: it is not replaced by another, which would hide its sessions */
const answers = (address: string): Promise<boolean> =>
  probe(address).then(
    () => true,
    (error: unknown) => {
      if (lacksNamespace(error)) throw error;
      return false;
    },
  );

/** The same for our own, which may be starting: it gets its namespace a moment after it answers. */
async function ownAnswers(ours: RunningService): Promise<boolean> {
  const began = performance.now();
  const trouble: { error?: Error } = {};
  const answered = await answersWhileAlive(ours, () =>
    probe(ours.address).catch((error: unknown) => {
      if (!lacksNamespace(error) || performance.now() - began < STARTING_MS) throw error;
      trouble.error = error;
    }),
  );
  if (trouble.error !== undefined) throw trouble.error;
  return answered;
}
