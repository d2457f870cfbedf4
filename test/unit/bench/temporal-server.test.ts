/** The server of the benchmark and the chaos run: the version in docker-compose.yml, with ports that it can store. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { serverConfig, SERVICES, type ServicePorts } from "../../support/temporal-server/config.ts";
import { SERVER_VERSION } from "../../support/temporal-server/programs.ts";

it("has the version in the compose file", () => {
  const compose = readFileSync(new URL("../../../docker-compose.yml", import.meta.url), "utf8");
  expect(compose).toContain(`temporalio/server:\${TEMPORAL_VERSION:-${SERVER_VERSION}}`);
});

it("has all four services on one machine, and stores its state in the given Postgres", () => {
  const ports = Object.fromEntries(
    SERVICES.map((name, index) => [name, { grpc: 20_000 + index, membership: 21_000 + index }]),
  ) as ServicePorts;
  const postgres = "127.0.0.1:5555";
  const config = parse(serverConfig({ ports, postgres, dynamicConfig: "/tmp/dynamic.yaml" })) as {
    services: Record<string, { rpc: { grpcPort: number; membershipPort: number } }>;
    persistence: { datastores: Record<string, { sql: { connectAddr: string } }> };
    publicClient: { hostPort: string };
  };
  expect(Object.keys(config.services)).toEqual([...SERVICES]);
  expect(config.services["history"]?.rpc).toMatchObject({ grpcPort: 20_002, membershipPort: 21_002 });
  expect(config.publicClient.hostPort).toBe("127.0.0.1:20000");
  const stores = Object.values(config.persistence.datastores);
  expect(stores.map((store) => store.sql.connectAddr)).toEqual([postgres, postgres]);
});
