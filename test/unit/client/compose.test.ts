import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readCompose } from "../../../client/config/compose.ts";

const workspace = mkdtempSync(join(tmpdir(), "longhaul-compose-"));
afterAll(() => rmSync(workspace, { recursive: true }));
mkdirSync(join(workspace, "db"));
writeFileSync(join(workspace, "db/init.sql"), "select 1;");
writeFileSync(join(workspace, "db/test.env"), "# comment\nexport FROM_FILE='a b'\nBOTH=file\n");
symlinkSync("/etc/passwd", join(workspace, "out"));

function read(text: string, without?: readonly string[]) {
  const path = join(workspace, "compose.yaml");
  writeFileSync(path, text);
  return readCompose({ path, workspace, without });
}

const service = (lines: string) =>
  `services:\n  worker:\n    image: busybox:1\n${lines.replaceAll(/^/gm, "    ")}\n`;

describe("a compose file", () => {
  it("is read as services of a sandbox", () => {
    const { services, notes } = read(`
x-usual: &usual {restart: always}
services:
  db:
    <<: *usual
    image: postgres:\${TAG:-17}
    environment: [POSTGRES_PASSWORD=test, "BOTH=here", COST=$$5]
    env_file: db/test.env
    command: postgres -c "fsync=off"
    healthcheck: {test: pg_isready, interval: 5s, retries: 20}
    ports: ["127.0.0.1:15432:5432"]
    expose: ["5433"]
    volumes: ["data:/var/lib/postgresql/data", "./db/init.sql:/docker-entrypoint-initdb.d/init.sql:ro"]
    user: 999
  cache:
    image: redis:8
    depends_on: {db: {condition: service_healthy}}
    tmpfs: /data
volumes: {data: {}}
`);
    expect(services).toEqual({
      db: {
        image: "postgres:17",
        env: { POSTGRES_PASSWORD: "test", BOTH: "here", COST: "$5", FROM_FILE: "a b" },
        command: ["postgres", "-c", "fsync=off"],
        health: { test: ["CMD-SHELL", "pg_isready"], interval: 5_000, timeout: 100_000 },
        ports: [5432, 5433],
        files: { "db/init.sql": "/docker-entrypoint-initdb.d/init.sql" },
        data: "kept",
        dataFolders: ["/var/lib/postgresql/data"],
        user: "999",
      },
      cache: { image: "redis:8", env: {}, ports: [], dependsOn: { db: "healthy" }, tmpfs: ["/data"] },
    });
    expect(notes).toEqual(["compose.yaml: left out of db: restart."]);
  });

  it.each([
    [
      "privileged: true",
      /service "worker" uses privileged, which a sandbox cannot have\. Leave the service out with --without worker/,
    ],
    ["build: .", /uses build/],
    ["cap_add: [NET_ADMIN]", /uses cap_add/],
    ["devices: [/dev/fuse]", /uses devices/],
    ["network_mode: host", /uses network_mode/],
    ["pid: host", /uses pid/],
    ["ipc: host", /uses ipc/],
    ["secrets: [a]", /uses secrets/],
    ["extends: {service: a}", /uses extends/],
    ["profiles: [a]", /uses profiles/],
    [
      "volumes: ['/var/run/docker.sock:/var/run/docker.sock']",
      /the bind mount \/var\/run\/docker\.sock \(a path of this machine\)/,
    ],
    ["volumes: ['../../etc:/x']", /the bind mount \.\.\/\.\.\/etc/],
    ["volumes: ['./db:/x']", /the bind mount \.\/db \(no file\)/],
    ["volumes: ['./out:/x']", /the bind mount \.\/out \(it leads out of the project\)/],
    ["volumes: [{type: bind, source: /etc, target: /x}]", /the bind mount \/etc/],
    ["env_file: ../secret", /env_file \.\.\/secret/],
    ["environment: {KEY: $HOME}", /\$HOME, whose value is a variable of this machine/],
    ["ports: ['3000-3005:3000-3005']", /the ports 3000-3005:3000-3005/],
    ["depends_on: {worker2: {condition: service_healthy}}\n", undefined],
  ])("is refused by name for %j", (lines, why) => {
    if (why === undefined) expect(read(service(lines)).services["worker"]).toMatchObject({ dependsOn: {} });
    else expect(() => read(service(lines))).toThrow(why);
  });

  it("is refused for two services on a port, and read without one of them", () => {
    const text = "services:\n  a: {image: a, ports: [5432]}\n  b: {image: b, ports: ['1:5432']}\n";
    expect(() => read(text)).toThrow(/5432 is the port of a too/);
    expect(Object.keys(read(text, ["b"]).services)).toEqual(["a"]);
    expect(() => read(text, ["c"])).toThrow(/--without c: compose\.yaml has no service of that name/);
  });

  it("is refused for include, secrets and configs of the whole file", () => {
    expect(() => read("include: [other.yaml]\nservices: {}\n")).toThrow(/uses include/);
  });
});
