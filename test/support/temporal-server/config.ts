/** The server's own configuration file: one process with all four services, on 127.0.0.1. Pure. */
import { stringify } from "yaml";

/** The server's names for its services; each needs two ports. */
export const SERVICES = ["frontend", "matching", "history", "worker"] as const;
export type ServicePorts = Readonly<Record<(typeof SERVICES)[number], { grpc: number; membership: number }>>;

export interface ServerSettings {
  readonly ports: ServicePorts;
  /** host:port of Postgres, whose superuser needs no password. */
  readonly postgres: string;
  /** File with dynamic configuration. */
  readonly dynamicConfig: string;
}

/** Databases of the server: its state, and its visibility store. */
export const DATABASES = { temporal: "temporal", visibility: "temporal_visibility" } as const;

/** The default of the server's own image, which docker-compose.yml keeps. */
const HISTORY_SHARDS = 4;
/** Source: ours; Postgres has 300 connections in the benchmark, and the workers need some. */
const STATE_CONNECTIONS = 40;
const LIST_CONNECTIONS = 10;

export function serverConfig({ ports, postgres, dynamicConfig }: ServerSettings): string {
  const datastore = (databaseName: string, connections: number) => ({
    sql: {
      pluginName: "postgres12",
      databaseName,
      connectAddr: postgres,
      connectProtocol: "tcp",
      user: "postgres",
      maxConns: connections,
      maxIdleConns: connections,
      maxConnLifetime: "1h",
    },
  });
  const frontend = `127.0.0.1:${ports.frontend.grpc}`;
  return stringify({
    log: { stdout: true, level: "warn" },
    persistence: {
      defaultStore: "state",
      visibilityStore: "visibility",
      numHistoryShards: HISTORY_SHARDS,
      datastores: {
        state: datastore(DATABASES.temporal, STATE_CONNECTIONS),
        visibility: datastore(DATABASES.visibility, LIST_CONNECTIONS),
      },
    },
    global: { membership: { maxJoinDuration: "30s", broadcastAddress: "127.0.0.1" } },
    services: Object.fromEntries(
      SERVICES.map((name) => [
        name,
        {
          rpc: {
            grpcPort: ports[name].grpc,
            membershipPort: ports[name].membership,
            bindOnLocalHost: true,
          },
        },
      ]),
    ),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: "active",
      currentClusterName: "active",
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: "frontend", rpcAddress: frontend },
      },
    },
    publicClient: { hostPort: frontend },
    dynamicConfigClient: { filepath: dynamicConfig, pollInterval: "10s" },
  });
}
