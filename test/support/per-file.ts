/** Something that a test file has for itself. */
import { afterAll, beforeAll } from "vitest";

/** Makes it before the first test of the file or `describe`, and ends it after the last. Its fields are there once the tests run. */
export function perFile<T extends object>(make: () => Promise<T>, end: (made: T) => Promise<void>): T {
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
