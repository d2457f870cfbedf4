/** Services of the test image for a session's settings, and looks at what the engine has of them. */
import type Dockerode from "dockerode";
import { type ServicesSettings, servicesSchema } from "../../activities/config/service-settings.ts";
import { serviceContainer } from "../../activities/sandbox/docker/services/service-profile.ts";
import { serviceImage } from "./service-image.ts";

type Changes = Readonly<Record<string, unknown>>;

/** Postgres, which the image starts by itself. */
export const database = async (changes: Changes = {}) => ({
  image: await serviceImage(),
  ports: [5432],
  memory: "256m",
  ...changes,
});

/** Redis, which keeps nothing on a disk. */
export const cache = async (changes: Changes = {}) => ({
  image: await serviceImage(),
  entrypoint: ["redis-server", "--save", "", "--bind", "127.0.0.1"],
  ports: [6379],
  health: { test: ["CMD", "redis-cli", "ping"] },
  memory: "64m",
  ...changes,
});

/** Settings of a sandbox with services, with their defaults; the image of the sandbox has psql and redis-cli. */
export async function withTestServices(services: Readonly<Record<string, unknown>>): Promise<{
  readonly image: string;
  readonly services: ServicesSettings;
}> {
  return { image: await serviceImage(), services: servicesSchema.parse(services) };
}

export const inspectService = (docker: Dockerode, sessionId: string, name: string) =>
  docker.getContainer(serviceContainer(sessionId, name)).inspect();

/** Names of all containers and volumes with the session's label. */
export async function labelled(docker: Dockerode, sessionId: string): Promise<string[]> {
  const filters = { label: [`longhaul.session=${sessionId}`] };
  const containers = await docker.listContainers({ all: true, filters });
  const { Volumes: volumes } = await docker.listVolumes({ filters });
  return [
    ...containers.flatMap(({ Names: names }) => names),
    ...(volumes ?? []).map(({ Name: name }) => name),
  ];
}
