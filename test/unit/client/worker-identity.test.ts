import { hostname } from "node:os";
import { expect, test } from "vitest";
import { parseIdentity } from "../../../client/setup/temporal-server.ts";
import { workerIdentity } from "../../../worker/worker-options.ts";

test("what a worker calls itself names its process and machine", () => {
  for (const buildId of ["local", "4f38eb6", "a:b@c"])
    expect(parseIdentity(workerIdentity({ buildId }))).toEqual({ pid: process.pid, host: hostname() });
  expect(parseIdentity("someone else's")).toBeUndefined();
});
