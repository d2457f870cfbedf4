import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { bash, useSandbox, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes, { memoryBytes: 1_024 * 2 ** 20 });

test("the default image has what the system prompt says", async () => {
  const { out: said } = await bash(
    sandbox,
    `for tool in npm npx corepack pnpm yarn pip uv uvx gcc g++ make cmake git git-lfs curl wget jq rg fd sqlite3 zip unzip \
       xz file tree less nano ps ip ss nc ssh python pkg-config
     do command -v $tool > /dev/null || echo "no $tool"; done
     python -m venv /tmp/venv && /tmp/venv/bin/pip --version | cut -d' ' -f1
     node --version | cut -d. -f1; python -c 'import sys; print(sys.version_info.major)'`,
    90_000,
  );
  expect(said.trim().split("\n")).toEqual(["pip", "v24", "3"]);
});

test("pnpm and yarn work without a network, and native modules find Node's headers", async () => {
  const { out } = await bash(
    sandbox,
    `cd /tmp && pnpm --version && yarn --version
     mkdir addon && cd addon && echo '{"targets":[{"target_name":"addon","sources":["addon.c"]}]}' > binding.gyp
     printf '#include <node_api.h>\\nNAPI_MODULE_INIT() { napi_value v; napi_create_int32(env, 7, &v); return v; }\\n' > addon.c
     node /usr/local/lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js rebuild > log 2>&1 || tail log
     node -p 'require("./build/Release/addon.node")'`,
    90_000,
  );
  expect(out).toMatch(/^\d+\.\d+\.\d+\n1\.22\.\d+\n7\n$/);
});

test("global installations go into the home, which is on the tools' path, without root", async () => {
  const { out: said } = await bash(
    sandbox,
    `mkdir -p /tmp/tool && cd /tmp/tool && printf '#!/usr/bin/env node\\nconsole.log("installed")\\n' > cli.js && chmod +x cli.js
     echo '{"name":"tool","version":"1.0.0","bin":{"tool":"cli.js"}}' > package.json
     npm install --global --offline . > /dev/null && tool && command -v tool; npm config get prefix; id -u`,
    90_000,
  );
  expect(said.trim().split("\n")).toEqual([
    "installed",
    "/home/agent/.local/bin/tool",
    "/home/agent/.local",
    "1000",
  ]);
});

test("sessions of one person share package caches, which other people's sessions cannot see", async () => {
  const mine = randomBytes(8).toString("hex");
  const caches = [mine, randomBytes(8).toString("hex")];
  const sessions = [mine, mine, caches[1] ?? ""].map((cache) => sandboxes.spec({ cache }));
  const found: string[] = [];
  try {
    for (const spec of sessions) {
      const opened = await sandboxes.host.open(spec);
      const { out } = await bash(
        opened,
        "cat ~/.cache/mark 2>/dev/null || echo none; echo kept > ~/.cache/mark",
      );
      found.push(out.trim());
      await sandboxes.host.remove(spec.sessionId);
    }
    expect(found).toEqual(["none", "kept", "none"]);
  } finally {
    await Promise.all(caches.map((cache) => sandboxes.docker.getVolume(`longhaul.cache-${cache}`).remove()));
  }
});

test("C is compiled", async () => {
  const { out } = await bash(
    sandbox,
    "cd /tmp && echo 'int main(void){return 7;}' > seven.c && gcc seven.c -o seven && ./seven; echo $?",
  );
  expect(out).toBe("7\n");
});

test("a program that a tool puts first on the path is run by tools, never by the supervisor", async () => {
  const { out } = await bash(
    sandbox,
    "mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho mine\\n' > ~/.local/bin/python3 && chmod +x ~/.local/bin/python3; python3",
  );
  expect(out).toBe("mine\n");
  const { Config } = await sandboxes.docker.getContainer(sandbox.container).inspect();
  expect(Config.Env.find((entry) => entry.startsWith("PATH="))).not.toContain("home");
  expect((await bash(sandbox, "echo still here")).out).toBe("still here\n");
});
