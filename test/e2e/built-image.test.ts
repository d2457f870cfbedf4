import { randomBytes } from "node:crypto";
import { afterAll, expect, inject, test } from "vitest";
import type { ConfigChanges } from "../support/run-config.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { file } from "../support/workspace-file.ts";
import { removeSetUpImages } from "../support/set-up-images.ts";

const agent = useAgent();
afterAll(() => agent.deps.sandboxHost.removeUnused());
removeSetUpImages(agent);

const DOCKERFILE = `FROM ${inject("sandboxImage")} AS base
ARG WORD=none
RUN echo "as $(id -u): $WORD" > /opt/made && ls -A /sys/class/net > /opt/networks
FROM base AS dev
COPY . /opt/context
ENV FROM_IMAGE=yes
FROM dev AS unused
RUN exit 9
`;
const files = (contents: Record<string, string>) =>
  packWorkspace(Object.entries(contents).map(([path, text]) => file(path, text)));

type SandboxChanges = NonNullable<ConfigChanges["sandbox"]>;
const building = (owner: string, setup: readonly string[], more: SandboxChanges): ConfigChanges => ({
  sandbox: {
    setup: { commands: [...setup], optional: false, keep: true, timeout: 60_000 },
    inherited: { setup: owner },
    ...more,
  },
});
const BUILD = { dockerfile: "Dockerfile", context: ".", args: {} };

test("a sandbox's image is built from the workspace's Dockerfile, once for the same files", async () => {
  const owner = randomBytes(8).toString("hex");
  const look =
    "cat /opt/made /opt/networks; echo $FROM_IMAGE; cd /opt/context; find . -type f | sort; cat ~/tool";
  const run = async (text: string) => {
    const session = await agent.start(scriptedModel().calls("bash", { command: look }).says("Done."), {
      config: building(owner, ["echo tool > ~/tool"], {
        build: { ...BUILD, args: { WORD: "given" }, target: "dev" },
      }),
      workspace: await files({
        Dockerfile: DOCKERFILE,
        ".dockerignore": "# not these\n**/*.log\n!keep.log\nsecret\n",
        "a.log": "",
        "keep.log": "",
        "secret/key": "",
        "src/main.js": text,
      }),
    });
    expect((await session.result()).status).toBe("completed");
    const { data } = await session.until("setup:built");
    const types = (await session.events()).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith("setup:"))).toEqual([
      "setup:started",
      "setup:built",
      "setup:ended",
    ]);
    return { data, result: (await resultTexts(agent.database.store, session.id))[0] };
  };
  const first = await run("one");
  expect(first.data.kept).toBe("made");
  expect(first.data.output).toContain("Successfully built");
  expect(first.result).toBe(
    "as 0: given\nlo\nyes\n./.dockerignore\n./Dockerfile\n./keep.log\n./src/main.js\ntool",
  );
  const second = await run("one");
  expect(second).toMatchObject({ data: { kept: "taken", image: first.data.image }, result: first.result });
  const other = await run("two");
  expect(other.data.kept).toBe("made");
  expect(other.data.image).not.toBe(first.data.image);
});

test("a failed build, or one without a usable image, ends the run unpaid and leaves nothing", async () => {
  const owner = randomBytes(8).toString("hex");
  const label = `longhaul.test=${owner}`;
  const ends = async (dockerfile: string) => {
    const session = await agent.start(scriptedModel().says("Never asked."), {
      config: building(owner, [], { build: BUILD }),
      workspace: await files({ Dockerfile: dockerfile }),
    });
    await expect(session.result()).rejects.toThrow();
    expect(session.model.requests).toEqual([]);
    return (await session.until("session:ended")).data.reason;
  };
  // Other files' tests keep images at the same time.
  const from = `FROM ${inject("sandboxImage")}\nLABEL ${label}\n`;
  expect(await ends(`${from}RUN echo no such package && exit 7\n`)).toMatch(
    /SetupFailed[^]*docker build -f Dockerfile[^]*returned a non-zero code: 7[^]*no such package/,
  );
  expect(await ends(`${from}COPY gone /\n`)).toMatch(/SetupFailed[^]*COPY failed/);
  expect(await ends(`${from}RUN rm /usr/bin/python3*\n`)).toMatch(/SetupFailed[^]*has no python3/);
  expect(
    await ends(
      `${from}# as usual\nRUN true && \\\n  # so\n  --x; true\nRUN --mount=type=cache,target=/x ls\n`,
    ),
  ).toMatch(/SetupFailed[^]*line 7 of Dockerfile has RUN --mount, which only BuildKit builds/);
  expect(await ends(`${from}RUN echo $((1<<EOF)) "<<EOF"\nCOPY <<-'EOF' /x\n\tcontent\nEOF\n`)).toMatch(
    /SetupFailed[^]*line 4 of Dockerfile has a here-document \(COPY <<EOF\)/,
  );
  expect(await agent.docker.listImages({ filters: { label: ["longhaul.setup", label] } })).toEqual([]);
});

test("a Dockerfile's commands reach only listed addresses, and nobody else's layers are taken", async () => {
  const ask = "curl -s -o /dev/null -D - http://192.0.2.1/ | grep -o 'blocked-[a-z-]*' > /opt/refused";
  const run = async (owner: string, more: string) => {
    const session = await agent.start(
      scriptedModel().calls("bash", { command: "cat /opt/refused" }).says("Done."),
      {
        config: building(owner, [], { build: BUILD, network: "listed", domains: ["good.test"] }),
        workspace: await files({ Dockerfile: `FROM ${inject("sandboxImage")}\nRUN ${ask}\n${more}` }),
      },
    );
    expect((await session.result()).status).toBe("completed");
    expect(await resultTexts(agent.database.store, session.id)).toEqual(["blocked-by-allowlist"]);
    return session;
  };
  const [one, other] = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")];
  for (const owner of [one, other]) {
    const session = await run(owner, "");
    const denied = await session.until("egress:denied");
    expect(denied.data).toMatchObject({ host: "192.0.2.1", reason: "blocked-by-allowlist" });
  }
  const again = await run(one, "RUN true\n");
  expect(await again.dataOf("setup:built")).toMatchObject([{ kept: "made" }]);
  expect(await again.dataOf("egress:denied")).toEqual([]);
});
