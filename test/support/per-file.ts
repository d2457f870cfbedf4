/** Services that a test file has for itself: made before its first test, ended after its last. Called at the file's top. */
import { afterAll, beforeAll } from "vitest";
import { startAgent, type AgentHarness } from "./agent-harness.ts";
import { createTestDatabase, type TestDatabase } from "./test-database.ts";

/** @param maxConnections of the store's pool */
export function useDatabase(maxConnections?: number): TestDatabase {
  return perFile(
    () => createTestDatabase(maxConnections),
    (database) => database.drop(),
  );
}

export function useAgent(): AgentHarness {
  return perFile(startAgent, (agent) => agent.close());
}

/** Stands for what is there only once the tests run. */
function perFile<T extends object>(make: () => Promise<T>, end: (made: T) => Promise<void>): T {
  const made: { value?: T } = {};
  beforeAll(async () => {
    made.value = await make();
  });
  afterAll(async () => {
    if (made.value) await end(made.value);
  });
  const there = (): T => {
    if (!made.value) throw new Error("This is there only once the file's tests run.");
    return made.value;
  };
  return new Proxy({} as T, {
    get: (_target, name) => Reflect.get(there(), name) as unknown,
    ownKeys: () => Reflect.ownKeys(there()),
    getOwnPropertyDescriptor: (_target, name) => ({
      ...Reflect.getOwnPropertyDescriptor(there(), name),
      configurable: true,
    }),
  });
}
