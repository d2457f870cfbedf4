/** Resources of a test file, or of each of its tests. */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

type Make<T> = () => Promise<T>;
type End<T> = (value: T) => Promise<void>;
interface Closable {
  close(): Promise<void>;
}
interface Keep {
  <T extends Closable>(make: Make<T>): T;
  <T extends object>(make: Make<T>, end: End<T>): T;
}

const closed = (resource: object) => (resource as Closable).close();

/** Made before the first test of the file or `describe`, closed after the last. Its fields exist once the tests run. */
export const perFile: Keep = <T extends object>(make: Make<T>, end: End<T> = closed): T =>
  lazily(beforeAll, afterAll, make, end);

/** Made before each test, closed after it. */
export const perTest: Keep = <T extends object>(make: Make<T>, end: End<T> = closed): T =>
  lazily(beforeEach, afterEach, make, end);

function lazily<T extends object>(
  before: typeof beforeAll | typeof beforeEach,
  after: typeof afterAll | typeof afterEach,
  make: Make<T>,
  end: End<T>,
): T {
  let value: T | undefined;
  before(async () => {
    value = await make();
  });
  after(async () => {
    const ending = value;
    value = undefined;
    if (ending) await end(ending);
  });
  const there = (): T => {
    if (!value) throw new Error("This is there only while the tests run.");
    return value;
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
