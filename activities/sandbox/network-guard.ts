/** Puts a box's network rules into its kernel: by a container that lives for this alone. Works through the engine's API. */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import type { BoxRules } from "./box-link.ts";
import { guardSource, pythonArguments } from "./box-source.ts";
import { networkRules, type NetworkRules } from "./network-rules.ts";
import { GUARD_LABEL } from "./profile.ts";
import type { BoxSpec } from "./sandbox.ts";

const GUARD_TIMEOUT_MS = 30_000;
const HEAD_BYTES = 8;

/**
 * The rules of one life of a box, for the way to it. Where we have just started it they are put in force while the way
 * is made: 0.2 s less.
 */
export async function rulesFor(
  docker: Dockerode,
  found: ContainerInspectInfo,
  spec: BoxSpec,
  started: boolean,
): Promise<BoxRules> {
  if (spec.network === "none") {
    return { disk: spec.disk, probe: [], guard: () => Promise.resolve([]) };
  }
  const rules = await rulesOf(docker, found, spec);
  const put = () => putRules(docker, found, spec, rules);
  let early = started ? put() : undefined;
  void early?.then(() => (early = undefined));
  return { disk: spec.disk, probe: rules.probe, guard: () => early ?? put() };
}

/**
 * What the box must not reach, of the container as it runs. The host is known by the box's gateway, by the worker's own
 * addresses, and by the engine's where it is reached over a network.
 */
async function rulesOf(docker: Dockerode, found: ContainerInspectInfo, spec: BoxSpec): Promise<NetworkRules> {
  const networks = Object.values(found.NetworkSettings.Networks);
  const gateways = networks.flatMap((each) => [each.Gateway, each.IPv6Gateway]);
  const own = Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
  return networkRules({
    host: [...gateways, ...own, ...(await engineAddresses(docker))].filter((address) => address !== ""),
    subnets: networks.flatMap((each) => [
      ...(each.IPAddress === "" ? [] : [`${each.IPAddress}/${each.IPPrefixLen}`]),
      ...(each.GlobalIPv6Address === "" ? [] : [`${each.GlobalIPv6Address}/${each.GlobalIPv6PrefixLen}`]),
    ]),
    allow: spec.allow ?? [],
  });
}

async function engineAddresses(docker: Dockerode): Promise<string[]> {
  const { host } = docker.modem as { host?: unknown };
  if (typeof host !== "string" || host === "") return [];
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

/**
 * Puts the rules in force for a running box. Doing it twice does nothing the second time. They end with the box's
 * network namespace: a container that was restarted needs them anew.
 * @returns what went wrong, one line each; an engine that refuses the container is one of them
 */
async function putRules(
  docker: Dockerode,
  found: ContainerInspectInfo,
  spec: BoxSpec,
  rules: NetworkRules,
): Promise<readonly string[]> {
  let container: Dockerode.Container | undefined;
  try {
    container = await docker.createContainer({
      Image: found.Image,
      User: "0:0",
      WorkingDir: "/",
      Entrypoint: pythonArguments("LONGHAUL_GUARD"),
      Cmd: [],
      Env: [
        `LONGHAUL_GUARD=${guardSource}`,
        `LONGHAUL_ADDRESSES=${JSON.stringify({ block: rules.block, allow: rules.allow })}`,
      ],
      Labels: { [GUARD_LABEL]: spec.sessionId },
      Healthcheck: { Test: ["NONE"] },
      AttachStdout: true,
      HostConfig: {
        NetworkMode: `container:${found.Id}`,
        CapDrop: ["ALL"],
        CapAdd: ["NET_ADMIN"],
        SecurityOpt: ["no-new-privileges:true"],
        ReadonlyRootfs: true,
        PidsLimit: 8,
        Memory: 64 * 2 ** 20,
        AutoRemove: true,
        LogConfig: { Type: "none", Config: {} },
        ...(spec.runtime === undefined ? {} : { Runtime: spec.runtime }),
      },
    });
    const output = await container.attach({ stream: true, stdout: true });
    const said = firstLine(output);
    await container.start();
    return troublesIn(await said);
  } catch (error) {
    // Where it never started nothing else removes it.
    await container?.remove({ force: true }).catch(() => undefined);
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** The program's one line; the container's end is not waited for. */
function firstLine(output: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const text = (): string => bytes.subarray(HEAD_BYTES).toString("utf8");
    const timer = setTimeout(
      () => reject(new Error(`it did not answer within ${GUARD_TIMEOUT_MS / 1000} s`)),
      GUARD_TIMEOUT_MS,
    );
    output.on("data", (piece: Buffer) => {
      bytes = Buffer.concat([bytes, piece]);
      if (bytes.includes("\n", HEAD_BYTES)) resolve(text());
    });
    output.on("error", reject);
    output.on("end", () => resolve(text()));
    // `resolve` twice is once.
    output.on("close", () => clearTimeout(timer));
  });
}

function troublesIn(said: string): readonly string[] {
  try {
    const { troubles } = JSON.parse(said) as { troubles: readonly string[] };
    return troubles;
  } catch {
    return [`it said ${JSON.stringify(said.slice(0, 200))}`];
  }
}
