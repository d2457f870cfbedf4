/** A Docker engine whose streams into a sandbox can be broken: the command's effect remains, its caller gets no answer. */
import { Duplex } from "node:stream";
import Dockerode from "dockerode";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { TestSandboxes } from "./test-sandboxes.ts";

export interface BreakingDocker {
  readonly docker: Dockerode;
  /** Drops the next answer together with its stream. */
  loseNextAnswer(): void;
  /** How many answers were dropped. */
  readonly lost: number;
  /** Ends every open stream. */
  breakStreams(): void;
}

/** One sandbox as two workers have it. */
export interface TwoWays {
  readonly breaking: BreakingDocker;
  /** Over streams that can be broken. */
  readonly sandbox: Sandbox;
  /** Over an ordinary stream. */
  readonly sound: Sandbox;
  close(): Promise<void>;
}

export async function openTwoWays(sandboxes: TestSandboxes): Promise<TwoWays> {
  const breaking = createBreakingDocker();
  const host = createDockerHost({ docker: breaking.docker, name: "test" });
  const spec = sandboxes.spec();
  const sandbox = await host.open(spec);
  return { breaking, sandbox, sound: await sandboxes.host.open(spec), close: () => host.close() };
}

function createBreakingDocker(): BreakingDocker {
  const docker = new Dockerode();
  const open = new Set<Duplex>();
  let loseNext = false;
  let lost = 0;

  function breakable(real: Duplex): Duplex {
    const stream = new Duplex({
      write: (chunk, encoding, done) => void real.write(chunk, encoding, done),
      read: () => undefined,
      destroy: (error, done) => (real.destroy(), open.delete(stream), done(error)),
    });
    open.add(stream);
    real.on("data", (chunk) => {
      if (!loseNext) return void stream.push(chunk);
      loseNext = false;
      lost++;
      stream.destroy();
    });
    real.on("end", () => stream.push(null));
    real.on("error", (error) => stream.destroy(error));
    return stream;
  }

  const getContainer = docker.getContainer.bind(docker);
  docker.getContainer = (id) => {
    const container = getContainer(id);
    const exec = container.exec.bind(container) as (options: object) => Promise<Dockerode.Exec>;
    container.exec = (async (options: object) => {
      const execution = await exec(options);
      const start = execution.start.bind(execution);
      execution.start = (async (how: Dockerode.ExecStartOptions) =>
        breakable(await start(how))) as Dockerode.Exec["start"];
      return execution;
    }) as Dockerode.Container["exec"];
    return container;
  };

  return {
    docker,
    loseNextAnswer: () => {
      loseNext = true;
    },
    get lost() {
      return lost;
    },
    breakStreams: () => {
      for (const way of open) way.destroy();
    },
  };
}
