/**
 * The layers of a workspace with a base: the engine stacks the session's volume of changes over the base's volume, and the kernel
 * keeps what differs. agent/layers.py reads both.
 */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { ApplicationFailure } from "@temporalio/common";
import type Dockerode from "dockerode";
import { pack } from "tar-stream";
import { reasonOf } from "../../contract/errors.ts";
import { retryable } from "../../contract/failures.ts";
import { cutChars } from "../../text/cut.ts";
import type { OwnSession, SandboxSpec } from "../sandbox-host.ts";
import { ownVolume, removeSandbox, volumeLabels } from "./docker-containers.ts";
import { statusOf, unavailable, unless } from "./docker-errors.ts";
import {
  BASE_LABEL,
  baseMaker,
  baseVolume,
  createOptions,
  GUARD_LABEL,
  INSTALLATION_LABEL,
  layerOptions,
  type LayerPlaces,
  layersName,
  ownerLabels,
  sandboxLabels,
  sandboxName,
} from "./profile.ts";
import { runOnce } from "./run-program.ts";

/** The tools' user, in every sandbox. */
const TOOLS = { uid: 1000, gid: 1000 };

/** The kernel's two folders for the changes. */
const FOLDERS: readonly FirstEntry[] = [
  { name: "up", type: "directory" },
  { name: "work", type: "directory" },
];

/**
 * Makes the volume that stacks the session's changes over its base. Idempotent: the volume is made last.
 * @returns undefined for a session without a base
 * @throws SandboxUnavailable (retryable) if the base is not there (any more)
 */
export async function prepareLayers(
  docker: Dockerode,
  spec: SandboxSpec,
  now: Date,
): Promise<LayerPlaces | undefined> {
  const { sessionId, base, installation } = spec;
  if (base === undefined) return undefined;
  const [lower, changes] = await Promise.all(
    [baseVolume(base, installation), sandboxName(sessionId)].map((name) => placeOf(docker, name)),
  );
  if (lower === undefined || changes === undefined)
    throw retryable("SandboxUnavailable", "the base of the session's files was removed; it is made again");
  const layers = { base: lower, changes };
  const name = layersName(sessionId);
  const proof = { ...ownerLabels(spec), [BASE_LABEL]: base };
  if ((await volumeLabels(docker, name)) === undefined)
    await putEntries(docker, spec, sandboxName(sessionId), FOLDERS);
  await ownVolume(docker, name, proof, {
    labels: sandboxLabels(spec, now),
    options: layerOptions(layers),
  });
  return layers;
}

/** The folder of a volume on the engine's host. */
async function placeOf(docker: Dockerode, name: string): Promise<string | undefined> {
  return (await unless([404], () => docker.getVolume(name).inspect()))?.Mountpoint;
}

interface FirstEntry {
  readonly name: string;
  readonly type: "file" | "directory";
}

/** Puts entries of the tools' user into a volume, through a container that is never started: no program of ours may write there. */
async function putEntries(
  docker: Dockerode,
  spec: SandboxSpec,
  volume: string,
  entries: readonly FirstEntry[],
): Promise<void> {
  const tar = pack();
  // The content makes the package end a file's entry.
  for (const entry of entries) tar.entry({ ...entry, mode: 0o755, ...TOOLS }, "");
  tar.finalize();
  await unless([], async () => {
    const container = await docker.createContainer({
      Image: spec.keptImage ?? spec.image,
      Entrypoint: ["true"],
      Cmd: [],
      // Left by a worker that dies here, it goes with the sandbox: docker-containers.ts.
      Labels: { [GUARD_LABEL]: spec.sessionId, [INSTALLATION_LABEL]: spec.installation ?? "" },
      NetworkDisabled: true,
      HostConfig: {
        Mounts: [
          {
            Type: "volume",
            Source: volume,
            Target: "/volume",
            VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: "local", Options: {} } },
          },
        ],
      },
    });
    try {
      await container.putArchive(Readable.from(tar), { path: "/volume" });
    } finally {
      await container.remove({ force: true });
    }
  });
}

/** What the tools do with folders and files of a base, and what agent/layers.py relies on. */
const TRIAL = `import os
os.chdir("/workspace")
of_base, seen = os.stat("/run/longhaul-base/file").st_ino, os.stat("file").st_ino
os.rename("folder", "renamed")
os.unlink("file")
print("works" if seen == of_base else "its volumes are not on one file system")`;

/** Whose changes stand on the base of a trial. */
export const trialSession = (key: string): OwnSession => ({ sessionId: `trial:${key}` });

/**
 * Tries layers out with two volumes of their own, which it removes.
 * @returns why they do not work here; undefined if they do
 * @throws SandboxUnavailable (retryable) if the engine is away
 */
export async function tryLayers(docker: Dockerode, image: string): Promise<string | undefined> {
  const id = randomBytes(8).toString("hex");
  const spec: SandboxSpec = {
    ...trialSession(id),
    base: id,
    image,
    network: "none",
    memoryBytes: 0,
    cpus: 0,
    pids: 0,
  };
  const maker = baseMaker(id);
  try {
    const [lower, upper] = [baseVolume(id, undefined), sandboxName(spec.sessionId)];
    await ownVolume(docker, lower, ownerLabels(maker));
    await ownVolume(docker, upper, ownerLabels(spec));
    await putEntries(docker, spec, lower, [
      { name: "folder", type: "directory" },
      { name: "file", type: "file" },
    ]);
    const layers = await prepareLayers(docker, spec, new Date());
    const mounts = createOptions(spec, new Date(), { layers }).HostConfig?.Mounts ?? [];
    const output = await runOnce(docker, {
      Image: image,
      User: "1000:1000",
      Entrypoint: ["python3", "-I", "-S", "-c", TRIAL],
      HostConfig: { NetworkMode: "none", Mounts: mounts },
    }).catch((error: unknown) => {
      if (statusOf(error) === undefined) throw unavailable(error);
      return reasonOf(error);
    });
    const lastLine = output.trim().split("\n").at(-1) ?? "";
    return lastLine === "works"
      ? undefined
      : cutChars(lastLine || "the trial printed nothing", MAX_REASON_CHARS);
  } catch (error) {
    // What the engine refuses, it refuses each time, as behind a proxy that lets only some requests pass.
    if (error instanceof ApplicationFailure && error.nonRetryable === true)
      return cutChars(error.message, MAX_REASON_CHARS);
    throw error;
  } finally {
    await removeSandbox(docker, spec).catch(() => undefined);
    await removeSandbox(docker, maker).catch(() => undefined);
  }
}

const MAX_REASON_CHARS = 300;
