import { describe, expect, it, test } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { policyRefusal, operatorPolicySchema } from "../../activities/config/operator-policy.ts";
import { toRunPolicy } from "../../activities/config/run-policy.ts";
import {
  servicesPrompt,
  servicesSchema,
  startOrder,
  withFreshServices,
} from "../../activities/config/service-settings.ts";
import { withMachine } from "../../client/registries/session-registries.ts";
import { configOf } from "../support/run-config.ts";

const troublesOf = (services: unknown): string[] => {
  const result = agentConfigSchema.safeParse({ sandbox: { services } });
  return result.success
    ? []
    : result.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
};

describe("the settings of services", () => {
  it("have defaults, and stay as they are when they are read from a session's row", () => {
    const once = servicesSchema.parse({ db: { image: "postgres:17", health: { timeout: "1m30s" } } });
    expect(once["db"]).toMatchObject({
      memory: "512m",
      cpus: 1,
      data: "fresh",
      ports: [],
      health: { interval: 2_000, timeout: 90_000 },
    });
    expect(servicesSchema.parse(structuredClone(once))).toEqual(once);
  });

  it.each([
    [
      { db: { image: "a", ports: [5432] }, other: { image: "a", ports: [5432] } },
      /^sandbox\.services\.other\.ports: 5432 is the port of db too/,
    ],
    [{ "a.b": { image: "a" } }, /^sandbox\.services\.a\.b: /],
    [{ localhost: { image: "a" } }, /^sandbox\.services\.localhost: /],
    [{ db: { image: "a" }, DB: { image: "a" } }, /^sandbox\.services\.DB: is the same host name as db/],
    [{ db: { image: "a", dependsOn: { gone: "healthy" } } }, /dependsOn: there is no other service gone/],
    [
      { a: { image: "a", dependsOn: { b: "healthy" } }, b: { image: "a", dependsOn: { a: "started" } } },
      /in a circle/,
    ],
    [{ db: { image: "a", health: { timeout: "soon" } } }, /health\.timeout: a time of at most 1h/],
    [{ db: { image: "a", health: { test: ["CMD"] } } }, /health\.test: \[CMD, program/],
    [{ db: { image: "a", files: { "../../etc": "/x" } } }, /files/],
    [{ db: { image: "a", files: { x: "/proc/sys/kernel/x" } } }, /files.*absolute path in the service/],
    [{ db: { image: "a", files: { x: "/a/../../b" } } }, /absolute path in the service/],
    [{ db: { image: "a", privileged: true } }, /^sandbox\.services\.db: .*privileged/],
    [{ db: { image: "a", memory: "1m" } }, /memory: at least 6m/],
    [{ db: { image: "a", user: "a b" } }, /user: a user of the image/],
    [
      Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`s${at}`, { image: "a" }])),
      /9 services, and a sandbox has at most 8/,
    ],
  ])("refuse %j", (services, trouble) => {
    expect(troublesOf(services).join("\n")).toMatch(trouble);
  });

  test("refuse a Docker socket, and say what to do instead", () => {
    const result = agentConfigSchema.safeParse({ sandbox: { docker: "services" } });
    expect(result.error?.issues[0]?.message).toMatch(
      /no Docker socket, so Testcontainers .* sandbox\.services/,
    );
  });

  it("give an order in which each service follows those that it depends on", () => {
    const services = servicesSchema.parse({
      web: { image: "a", dependsOn: { db: "healthy", cache: "started" } },
      cache: { image: "a", dependsOn: { db: "started" } },
      db: { image: "a" },
    });
    expect(startOrder(services)).toEqual(["db", "cache", "web"]);
  });
});

const FACTS = {
  searchAttributes: false,
  taskQueues: {},
  prefix: { system: 0, tools: 0 },
  timeouts: { heartbeatMs: 30_000 },
};

describe("a session with services", () => {
  const withServices = (services: object, more: object = {}) =>
    configOf({ sandbox: { ...more, services } as never });
  const policy = (rules: object) => operatorPolicySchema.parse(rules);

  it("counts their memory and processors with the sandbox's against the policy", () => {
    const config = withServices({ db: { image: "a", memory: "1g", cpus: 2 } }, { memory: "2g", cpus: 2 });
    expect(policyRefusal(policy({ max: { memory: "2g" } }), config)).toEqual({
      rule: "max.memory",
      why: "sandbox.memory with that of sandbox.services is 3072m, and may be 2g at most",
    });
    expect(policyRefusal(policy({ max: { cpus: 3 } }), config)).toMatchObject({ rule: "max.cpus" });
    expect(policyRefusal(policy({ max: { memory: "3g", cpus: 4 } }), config)).toBeUndefined();
  });

  it("may have only the images that the policy allows", () => {
    const config = withServices({ db: { image: "evil/db:1" } }, { image: "node:24" });
    expect(policyRefusal(policy({ images: ["node:*"] }), config)).toMatchObject({
      rule: "images",
      why: expect.stringContaining("sandbox.services.db.image is evil/db:1"),
    });
  });

  it("is set up before its first step, for as long as its services may take", () => {
    const config = withServices({ db: { image: "a", health: { timeout: "3m" } } });
    expect(toRunPolicy(config, 0, FACTS).timeouts.setupMs).toBe(180_000);
    expect(toRunPolicy(configOf({}), 0, FACTS).timeouts.setupMs).toBeUndefined();
  });

  it("warns of variables that look like secrets, with every network", () => {
    for (const network of ["bridge", "none"] as const) {
      const { sandbox } = withServices({ db: { image: "a", env: { POSTGRES_PASSWORD: "x" } } }, { network });
      expect(withMachine(sandbox, {}, "/").notes.join("\n")).toMatch(
        /sandbox\.services\.db\.env: POSTGRES_PASSWORD can be read by the model/,
      );
    }
  });

  it("shows the model where they are", () => {
    const { sandbox } = withServices({
      db: { image: "postgres:17", ports: [5432] },
      cache: { image: "redis:8" },
    });
    expect(servicesPrompt(sandbox, false)).toContain(
      "Services: db (postgres:17) at db:5432, cache (redis:8) at cache.",
    );
    expect(servicesPrompt(sandbox, true)).toContain("started when the plan is approved");
    expect(servicesPrompt({ ...sandbox, container: {} }, false)).toBe("");
  });

  it("gives its delegates services that begin empty", () => {
    const { sandbox } = withServices({ db: { image: "a", data: "kept" } });
    expect(withFreshServices(sandbox).services?.["db"]?.data).toBe("fresh");
  });
});
