/** A worker's and a client's connection to a Temporal server. */
import { Client, Connection } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { dataConverter } from "../../temporal/codec.ts";

export interface Connections {
  readonly native: NativeConnection;
  readonly client: Client;
  close(): Promise<void>;
}

export async function connectTo(address: string): Promise<Connections> {
  const [native, connection] = await Promise.all([
    NativeConnection.connect({ address }),
    Connection.connect({ address }),
  ]);
  return {
    native,
    client: new Client({ connection, dataConverter }),
    close: async () => {
      await connection.close();
      await native.close();
    },
  };
}
