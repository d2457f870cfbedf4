/** A test's own empty Postgres server, which the test stops, kills, starves and fills. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinaries, postgresOwner } from "../../client/setup/postgres.ts";
import { probePostgres } from "../../temporal/postgres-probe.ts";
import { within } from "../../temporal/patience.ts";
import { freePort, run } from "../../client/setup/processes.ts";
import { ownProcess } from "./own-process.ts";

export interface PostgresServer {
  /** Its superuser's URL of the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** The folder of its data. */
  readonly data: string;
  /** Of its first process; 0 while it is stopped. */
  pid(): number;
  /** `fast` disconnects its clients, `immediate` does not even write what it has in memory. */
  stop(how?: "fast" | "immediate"): Promise<void>;
  /** On the same port, with the same data. */
  start(): Promise<void>;
  /** It accepts connections and answers nothing, until the returned function is called. */
  pause(): Promise<() => void>;
  /** Ends it and removes its data. */
  close(): Promise<void>;
}

export interface PostgresServerOptions {
  /** As in postgresql.conf, such as `max_connections=20`; a later one wins. By default nothing is flushed to the disk. */
  readonly settings?: readonly string[];
  /** Files and folders that it reads besides its data. */
  readonly reads?: readonly string[];
  /** Where its data go; default a new temporary folder. */
  readonly folder?: string;
  /** Folder of its write-ahead log; default with the data. */
  readonly walFolder?: string;
}

const START_MS = 60_000;

export async function startPostgresServer(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const home = mkdtempSync(join(tmpdir(), "longhaul-postgres-"));
  const data = join(options.folder ?? home, "data");
  const { initdb, postgres } = await findBinaries();
  mkdirSync(data, { recursive: true });
  const places = [postgres, data, ...(options.walFolder === undefined ? [] : [options.walFolder])];
  const owner = await postgresOwner(places, () => undefined);
  for (const path of [data, ...(options.reads ?? [])]) owner.chown(path);
  const wal = options.walFolder === undefined ? undefined : join(options.walFolder, "wal");
  if (wal !== undefined) {
    mkdirSync(wal, { recursive: true });
    owner.chown(wal);
  }
  const init = owner.wrap(initdb, [
    `--pgdata=${data}`,
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--wal-segsize=1",
    ...(wal === undefined ? [] : [`--waldir=${wal}`]),
  ]);
  await run(init.command, init.args, { cwd: "/", ...ids(init) });
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const values = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    ...(options.settings ?? []),
  ];
  const settings = values.flatMap((value) => ["-c", value]);
  const program = owner.wrap(postgres, ["-D", data, "-p", String(port), ...settings]);
  const server = ownProcess(
    `Postgres at ${port}`,
    { ...program, log: join(home, "postgres.log"), cwd: "/" },
    () => probePostgres(url, within(1_000)),
    START_MS,
  );
  let resume: (() => void) | undefined;
  const stop = async (how: "fast" | "immediate" = "fast") => {
    resume?.();
    await server.stop({ signal: how === "fast" ? "SIGINT" : "SIGQUIT" });
  };
  await server.start();
  return {
    url,
    port,
    data,
    pid: server.pid,
    start: () => server.start(),
    stop,
    async pause() {
      resume = await pauseAll(server.pid());
      return resume;
    },
    async close() {
      await stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Stops a process and its children. The kernel continues to accept connections for it. */
async function pauseAll(pid: number): Promise<() => void> {
  process.kill(pid, "SIGSTOP");
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]).catch(() => ({ stdout: "" }));
  const all = [pid, ...stdout.split("\n").map(Number).filter(Boolean)];
  const send = (signal: NodeJS.Signals) => {
    for (const target of all) {
      try {
        process.kill(target, signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  };
  send("SIGSTOP");
  return () => send("SIGCONT");
}

function ids(of: { uid?: number; gid?: number }): { uid?: number; gid?: number } {
  return of.uid === undefined || of.gid === undefined ? {} : { uid: of.uid, gid: of.gid };
}
