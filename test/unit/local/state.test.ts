import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { birthOf } from "../../../client/setup/processes.ts";
import { findServices } from "../../../client/setup/services.ts";
import { locked, readState, remember, rememberFound } from "../../../client/setup/state.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let home: string;
const lines: string[] = [];
const say = (line: string) => void lines.push(line);
beforeEach(() => {
  home = emptyFolder();
  lines.length = 0;
});

const temporal = {
  pid: 4_000_000,
  born: "1",
  address: "127.0.0.1:9999",
  uiUrl: "http://127.0.0.1:9998",
  log: "log",
};

test("a started service is recorded until it is removed", () => {
  remember(home, "temporal", temporal);
  rememberFound(home, "postgres", "DATABASE_URL");
  expect(readState(home)).toEqual({ services: { temporal }, found: { postgres: "DATABASE_URL" } });
  remember(home, "temporal", undefined);
  expect(readState(home).services).toEqual({});
});

test("a broken state file counts as none", () => {
  writeFileSync(join(home, "services.json"), '{"services": {"temp');
  expect(readState(home)).toEqual({ services: {}, found: {} });
});

test("a client finds the server that was started on another port than the usual", () => {
  remember(home, "temporal", temporal);
  const found = findServices(home, "free");
  expect(found.temporalAddress).toBe("127.0.0.1:9999");
  expect(found.uiUrl).toBe("http://127.0.0.1:9998");
  expect(found.environment["TEMPORAL_ADDRESS"]).toBe("127.0.0.1:9999");
});

test("two set-ups of one home run one after the other", async () => {
  const order: string[] = [];
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const first = locked(home, say, async () => {
    order.push("first begins");
    await gate;
    order.push("first ends");
  });
  const second = locked(home, say, async () => void order.push("second"));
  setTimeout(release, 50);
  await Promise.all([first, second]);
  expect(order).toEqual(["first begins", "first ends", "second"]);
  expect(lines).toHaveLength(1);
});

test("a lock whose holder died is claimed", async () => {
  writeFileSync(join(home, "lock"), JSON.stringify({ pid: process.pid, born: "long ago" }));
  expect(await birthOf(process.pid)).not.toBe("long ago");
  expect(await locked(home, say, async () => "in")).toBe("in");
});
