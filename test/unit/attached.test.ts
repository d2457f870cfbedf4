import { expect, it } from "vitest";
import { withAttached } from "../../activities/sandbox/docker/attached.ts";
import type { SandboxHost, SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { containerFor, inContainer } from "../../client/sessions/run-flags.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { systemPrompt } from "../../activities/config/system-prompt.ts";

const container = { name: "t1", folder: "/srv/app" };

it("a worker that does not allow attaching refuses such sessions without asking the engine", async () => {
  const opened: string[] = [];
  const own = {
    name: "host",
    open: (spec: SandboxSpec) => opened.push(spec.sessionId),
  } as unknown as SandboxHost;
  const host = withAttached(own, { docker: {} as never, isAllowed: false });
  const spec = { sessionId: "s" } as SandboxSpec;
  await expect(host.open({ ...spec, container })).rejects.toMatchObject({
    type: "ContainerUnavailable",
    nonRetryable: true,
    message: expect.stringContaining("LONGHAUL_ALLOW_CONTAINERS") as string,
  });
  await host.open(spec);
  expect(opened).toEqual(["s"]);
});

it("an attached session has no set-up or delegates, and knows its folder and its owner", () => {
  const settings = resolveConfig({}, { OPENAI_API_KEY: "sk", LONGHAUL_MODEL: "gpt-4o" }, "/").run;
  const config = inContainer(
    {
      ...settings,
      sandbox: { ...settings.sandbox, setup: { ...settings.sandbox.setup, commands: ["make"] } },
    },
    container,
  );
  expect(config.sandbox).toMatchObject({ container, setup: { commands: [] } });
  expect(config.delegate?.enabled).toBe(false);
  const prompt = systemPrompt({ instructions: undefined, config });
  expect(prompt).toContain("You work in /srv/app");
  expect(prompt).toContain("The container is the user's own");
  expect(prompt).not.toContain("/workspace");
});

it("flags that would change a container are refused with it, and a file cannot name one", async () => {
  await expect(containerFor({ container: "t1", repo: "https://example.com/r" })).rejects.toMatchObject({
    exitCode: 2,
  });
  await expect(containerFor({ workspaceDir: "/app" })).rejects.toMatchObject({ exitCode: 2 });
  await expect(containerFor({ container: "t1", workspaceDir: "app" })).rejects.toMatchObject({ exitCode: 2 });
  expect(await containerFor({})).toBeUndefined();
  expect(agentConfigSchema.safeParse({ sandbox: { container } }).error?.issues[0]?.message).toContain(
    "container",
  );
});
