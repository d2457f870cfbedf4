/** The server's own configuration file, from test/fixtures/temporal-server.yaml. */
import { fixtureText } from "../fixture-text.ts";

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

export function serverConfig({ ports, postgres, dynamicConfig }: ServerSettings): string {
  const ofServices = SERVICES.flatMap((name) =>
    (["grpc", "membership"] as const).map((port) => [`${name}.${port}`, ports[name][port]] as const),
  );
  const values = new Map<string, string | number>([
    ...ofServices,
    ["postgres", postgres],
    ["dynamicConfig", dynamicConfig],
    ...Object.entries(DATABASES),
  ]);
  return fixtureText("temporal-server.yaml").replaceAll(/<([\w.]+)>/g, (_, name: string) =>
    JSON.stringify(values.get(name)),
  );
}
