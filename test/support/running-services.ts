/** A sandbox with services, started as a session's are, without a session. */
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { SandboxHost, SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import type { ServiceHome } from "../../activities/sandbox/service-host.ts";
import { startServices, type ServiceOutcome } from "../../activities/workspace/start-services.ts";
import type { TestSandboxes } from "./test-sandboxes.ts";
import { withTestServices } from "./test-services.ts";

export interface RunningServices {
  readonly spec: SandboxSpec;
  readonly sandbox: Sandbox;
  readonly home: ServiceHome;
  readonly outcomes: readonly ServiceOutcome[];
  /** Starts or adopts them once more, on another worker's host if one is given. */
  readonly again: (host?: SandboxHost) => Promise<RunningServices>;
}

/** Opens a sandbox with the services and starts them. @param files of its workspace, by path */
export async function runServices(
  sandboxes: TestSandboxes,
  services: Readonly<Record<string, unknown>>,
  {
    files = {},
    ...changes
  }: Partial<SandboxSpec> & { readonly files?: Readonly<Record<string, string>> } = {},
  first: SandboxHost = sandboxes.host,
): Promise<RunningServices> {
  const settings = await withTestServices(services);
  const names = Object.keys(settings.services);
  const spec = sandboxes.spec({ image: settings.image, services: names, ...changes });
  const run = async (host: SandboxHost): Promise<RunningServices> => {
    const sandbox = await host.open(spec);
    for (const [path, text] of Object.entries(files)) await sandbox.files.write(path, Buffer.from(text));
    const { container, boot } = sandbox.identity;
    const home = { sessionId: spec.sessionId, container, boot };
    const outcomes = await startServices({
      host: host.services!,
      home,
      sandbox,
      services: settings.services,
      signal: AbortSignal.timeout(120_000),
      known: [],
      onStarted: async () => undefined,
      onHealthy: async () => undefined,
    });
    return { spec, sandbox, home, outcomes, again: (other = host) => run(other) };
  };
  return run(first);
}
