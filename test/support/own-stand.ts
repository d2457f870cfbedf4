/** What the benchmarks and the soak stand on: services on free ports, with their data in a folder of the run, closed together. */
import { Client, Connection } from "@temporalio/client";
import { bringUp, type LocalServices, type Need } from "../../client/setup/services.ts";
import { dataConverter } from "../../temporal/codec.ts";
import { type Closers, closable } from "./closers.ts";
import { endServices, newTestHome, sweepOldRuns } from "./services.ts";

export interface StandBase {
  readonly home: string;
  readonly services: LocalServices;
  /** Of the sandboxes. */
  readonly image: string;
  /** What else is closed with the stand; the newest first. */
  readonly add: Closers["add"];
  /** A client of a Temporal server, closed with the stand. */
  readonly connect: (address: string) => Promise<Client>;
}

/** @throws ServiceMissing */
export async function ownStand<T extends object>(
  need: readonly Need[],
  say: (line: string) => void,
  make: (base: StandBase) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  await sweepOldRuns();
  const home = newTestHome();
  return closable(
    () => endServices(home),
    async (add) => {
      const services = await bringUp({ home, ports: "free", say, need });
      const { sandboxImage: image } = services;
      if (image === undefined) throw new Error("There is no sandbox image.");
      const connect = async (address: string) => {
        const connection = await Connection.connect({ address });
        add(() => connection.close());
        return new Client({ connection, dataConverter });
      };
      return make({ home, services, image, add, connect });
    },
  );
}
