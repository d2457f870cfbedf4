/** Containers that another version made, and images that declare more than ours. */
import type Dockerode from "dockerode";
import { describe, expect, onTestFinished, test } from "vitest";
import { createOptions, PROFILE_LABEL } from "../../activities/sandbox/docker/profile.ts";
import { differences } from "../../activities/sandbox/docker/profile-differences.ts";
import { createSurroundings } from "../../activities/sandbox/docker/docker.ts";
import { bash, newId, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();

test.each([
  ["another protocol", { Labels: { "longhaul.protocol": "0" } }],
  [
    "another limit on open files",
    { HostConfig: { Ulimits: [{ Name: "nofile", Soft: 1_024, Hard: 1_024 }] } },
  ],
])(
  "a session's sandbox that another version made with %s is made again on its volume",
  async (_, { HostConfig: host = {}, Labels: labels = {} }: Dockerode.ContainerCreateOptions) => {
    const spec = sandboxes.spec();
    const options = createOptions(spec, new Date());
    const { [PROFILE_LABEL]: _profile, ...old } = options.Labels ?? {};
    const made = await sandboxes.docker.createContainer({
      ...options,
      Labels: { ...old, ...labels, [PROFILE_LABEL]: "of-another-version" },
      HostConfig: { ...options.HostConfig, ...host },
    });
    const files = await made.inspect();
    const sandbox = await sandboxes.host.open(spec);
    const found = await sandboxes.docker.getContainer(sandbox.container).inspect();
    expect(found.Id).not.toBe(files.Id);
    const workspace = ({ Mounts: mounts }: Dockerode.ContainerInspectInfo) =>
      mounts.find(({ Destination }) => Destination === "/workspace")?.Name;
    expect(workspace(found)).toBe(workspace(files));
    expect(differences(found, spec, await createSurroundings(sandboxes.docker, "")(found))).toEqual([]);
  },
);

test("another session's container of the same name is refused, whatever version made it", async () => {
  const spec = sandboxes.spec();
  const options = createOptions(spec, new Date());
  const made = await sandboxes.docker.createContainer({
    ...options,
    Labels: { ...options.Labels, [PROFILE_LABEL]: "of-another-version", "longhaul.session": "someone-else" },
  });
  await expect(sandboxes.host.open(spec)).rejects.toMatchObject({ type: "SandboxRefused" });
  await made.remove({ force: true, v: true });
});

describe("an image of another kind", () => {
  const build = async (changes: readonly string[]): Promise<string> => {
    const base = await sandboxes.docker.createContainer({ Image: sandboxes.spec().image });
    const repo = `longhaul-test-${newId().toLowerCase()}`;
    await base.commit({ repo, tag: "1", changes: changes.join("\n") });
    await base.remove({ v: true });
    const image = `${repo}:1`;
    onTestFinished(() => sandboxes.docker.getImage(image).remove({ force: true }));
    return image;
  };
  const volumes = async () => (await sandboxes.docker.listVolumes()).Volumes.map(({ Name }) => Name);

  test("that declares volumes is used, and they go with the sandbox", async () => {
    const image = await build(["VOLUME /data", "VOLUME /var/lib/db/"]);
    const before = await volumes();
    const spec = sandboxes.spec({ image });
    const sandbox = await sandboxes.host.open(spec);
    expect(
      (await bash(sandbox, "touch /workspace/x && mount | grep -c -E ' on (/data|/var/lib/db) '")).out,
    ).toBe("2\n");
    // Another worker adopts it.
    expect((await sandboxes.newHost().open(spec)).identity).toEqual(sandbox.identity);
    await sandboxes.host.remove(spec.sessionId);
    const left = (await volumes()).filter((name) => /^[0-9a-f]{64}$/.test(name) && !before.includes(name));
    expect(left).toEqual([]);
  });
});
