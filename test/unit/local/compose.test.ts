import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { providerVariables } from "../../../activities/config/providers.ts";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { readWorkerConfig } from "../../../worker/config.ts";
import { DYNAMIC_CONFIG } from "../../../client/setup/temporal.ts";
import { SEARCH_ATTRIBUTES } from "../../../temporal/search-attributes.ts";
import { composedRules } from "../../support/docker-socket-proxy.ts";

const project = fileURLToPath(new URL("../../..", import.meta.url));

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  /** Null: passed on if it is set. */
  readonly environment?: Record<string, string | null>;
  readonly depends_on?: Record<string, { condition: string }>;
  readonly ports?: string[];
  readonly volumes?: string[];
  readonly healthcheck?: unknown;
  readonly stop_grace_period?: string;
}

/** Variables as compose sets them by default. */
function compose(): { services: Record<string, Service>; volumes: Record<string, unknown> } {
  const withDefaults = (text: string) =>
    text.replace(/\$\{[A-Z_]+:-([^${}]*)\}/g, (_, value: string) => value || '""');
  // A default may be a variable with a default.
  const text = withDefaults(withDefaults(readFileSync(join(project, "docker-compose.yml"), "utf8")));
  return parse(text) as ReturnType<typeof compose>;
}

const { services } = compose();

test("every service waits until what it needs is healthy or done", () => {
  for (const [name, { depends_on = {} }] of Object.entries(services)) {
    for (const [other, { condition }] of Object.entries(depends_on)) {
      const awaited = services[other];
      expect(awaited, `${name} waits for ${other}`).toBeDefined();
      if (condition === "service_healthy") expect(awaited?.healthcheck, other).toBeDefined();
      else expect(condition).toBe("service_completed_successfully");
    }
  }
});

test("every port is published on this machine alone", () => {
  const ports = Object.values(services).flatMap((service) => service.ports ?? []);
  expect(ports.length).toBeGreaterThan(0);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test("every mounted file of the project exists", () => {
  const mounted = Object.values(services)
    .flatMap((service) => service.volumes ?? [])
    .map((volume) => volume.split(":")[0] ?? "")
    .filter((path) => path.startsWith("./"));
  expect(mounted.length).toBeGreaterThan(0);
  for (const path of mounted) expect(existsSync(join(project, path)), path).toBe(true);
});

test("the proxy to Docker lets a container be made only if it looks for mounts of the host", () => {
  const passing = (path: string) =>
    composedRules().filter((rule) => new RegExp(`^${rule.replace("-allowPOST=", "")}$`).test(path));
  expect(passing("/v1.41/containers/create")).toHaveLength(1);
  // Source: checkBindMountRestrictions of wollomatic/socket-proxy 1.12.2, which takes the path's second part for what is asked.
  for (const path of ["/containers/create", "/x/v1.41/containers/create"]) expect(passing(path)).toEqual([]);
  expect(services["docker-proxy"]?.command).toContain("-allowbindmountfrom=/nothing");
});

test("every image has a version", () => {
  for (const { image } of Object.values(services)) expect(image).toMatch(/:[0-9][\w.]*$/);
});

test("the worker's image is of this version", () => {
  const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string };
  expect(services["worker"]?.image).toBe(`longhaul-worker:${version}`);
});

test("the worker accepts its environment, and its stop timeout is longer than its grace period", () => {
  const worker = services["worker"];
  const given = Object.entries(worker?.environment ?? {}).map(([name, value]) => [name, value ?? undefined]);
  const config = readWorkerConfig(Object.fromEntries(given));
  expect(config.readyFile).toBe("/tmp/worker.ready");
  // What masks a secret leaves the names of images and queues as they are.
  const { clean } = createSanitizer(config.secrets);
  for (const value of [config.sandboxImage ?? "", config.guardImage, config.queues.workflows])
    expect(clean(value)).toBe(value);
  expect(Number.parseInt(worker?.stop_grace_period ?? "0") * 1_000).toBeGreaterThan(
    config.shutdownGraceMs + 8_000,
  );
});

test("the worker is given every provider's key, and no variable that the manual does not know", () => {
  const given = Object.keys(services["worker"]?.environment ?? {});
  // That is an address of this machine, which a container does not reach.
  const wanted = providerVariables.filter((name) => name !== "LONGHAUL_REHEARSAL_URL");
  expect(given).toEqual(expect.arrayContaining([...wanted]));
  const manual = ["configuration", "models"].map((name) =>
    readFileSync(join(project, `docs/${name}.md`), "utf8"),
  );
  for (const name of given)
    expect(
      manual.some((text) => text.includes(`\`${name}\``)),
      name,
    ).toBe(true);
});

test("`docker compose` itself reads the file without a remark", (context) => {
  // Nothing is set but where docker and its plugins are.
  const { PATH, HOME, DOCKER_CONFIG } = process.env;
  const composed = (...args: string[]) =>
    spawnSync("docker", ["compose", ...args], {
      cwd: project,
      encoding: "utf8",
      env: { PATH, HOME, DOCKER_CONFIG },
    });
  if (composed("version").status !== 0) context.skip("`docker compose` is not installed here");
  expect(composed("--file", "docker-compose.yml", "config", "--quiet")).toMatchObject({
    status: 0,
    stderr: "",
  });
});

test("the server gets the settings that the local one gets", () => {
  const config = parse(readFileSync(join(project, "docs/compose/dynamic-config.yaml"), "utf8")) as Record<
    string,
    { value: unknown }[]
  >;
  for (const setting of DYNAMIC_CONFIG) {
    const [name = "", value] = setting.split("=");
    expect(String(config[name]?.[0]?.value), name).toBe(value);
  }
  const script = readFileSync(join(project, "docs/compose/setup-namespace.sh"), "utf8");
  for (const name of SEARCH_ATTRIBUTES) expect(script).toContain(name);
});
