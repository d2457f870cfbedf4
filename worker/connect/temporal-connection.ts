/** How Temporal is reached: its standard variables and `temporal.toml` profiles, read by its own package. */
import { loadClientConnectConfig } from "@temporalio/envconfig";

type ConnectConfig = ReturnType<typeof loadClientConnectConfig>;

export interface TemporalConnection {
  readonly connection: ConnectConfig["connectionOptions"];
  readonly namespace: string;
}

/** @param address overrides the configuration: a server that we brought up ourselves */
export function temporalConnection(address?: string): TemporalConnection {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  return {
    connection: {
      ...connectionOptions,
      address: address ?? connectionOptions.address ?? "127.0.0.1:7233",
    },
    namespace: namespace ?? "default",
  };
}
