/** An image of services for tests: the sandbox's, with Postgres and Redis from Debian. It can be a sandbox too, which then has psql. */
import Dockerode from "dockerode";
import { createHash } from "node:crypto";
import { inject } from "vitest";
import { pack } from "tar-stream";

/** Starts Postgres as official images do: as root, which hands the data to another user and becomes that user. */
const START_DB = `#!/bin/sh
set -e
data=/var/lib/test-db
bin=$(ls -d /usr/lib/postgresql/*/bin)
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if [ ! -s "$data/PG_VERSION" ]; then
  chown postgres:postgres "$data"
  as "$bin/initdb" -D "$data" -A trust >/dev/null
  if ls /docker-entrypoint-initdb.d/*.sql >/dev/null 2>&1; then
    as "$bin/pg_ctl" -D "$data" -o "-c listen_addresses='' -c unix_socket_directories=/tmp" -w start >/dev/null
    for file in /docker-entrypoint-initdb.d/*.sql; do as psql -q -h /tmp -d postgres -f "$file"; done
    as "$bin/pg_ctl" -D "$data" -m fast -w stop >/dev/null
  fi
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$data" -c unix_socket_directories=/tmp -c fsync=off "$@"
`;

const dockerfile = (image: string): string => `FROM ${image}
USER root
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql redis-server && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /var/lib/test-db /docker-entrypoint-initdb.d
COPY start-db /usr/local/bin/start-db
RUN chmod 755 /usr/local/bin/start-db
VOLUME /var/lib/test-db
EXPOSE 5432
HEALTHCHECK CMD psql -h 127.0.0.1 -U postgres -c 'select 1'
ENTRYPOINT ["/usr/local/bin/start-db"]
CMD []
`;

let made: Promise<string> | undefined;

/** The image's name. Made once on a machine, in some 20 s, and kept: its tag says what it is made from. */
export function serviceImage(docker = new Dockerode()): Promise<string> {
  return (made ??= makeImage(docker, inject("sandboxImage")));
}

async function makeImage(docker: Dockerode, sandbox: string): Promise<string> {
  const files = { Dockerfile: dockerfile(sandbox), "start-db": START_DB };
  const { Id: from } = await docker.getImage(sandbox).inspect();
  const hash = createHash("sha256")
    .update(JSON.stringify([files, from]))
    .digest("hex")
    .slice(0, 12);
  const tag = `longhaul-test-services:${hash}`;
  const isThere = await docker
    .getImage(tag)
    .inspect()
    .then(
      () => true,
      () => false,
    );
  if (isThere) return tag;
  const context = pack();
  for (const [name, text] of Object.entries(files)) context.entry({ name, mode: 0o755 }, text);
  context.finalize();
  // With the machine's own network, as the sandbox image is made.
  const progress = await docker.buildImage(context as unknown as NodeJS.ReadableStream, {
    t: tag,
    networkmode: "host",
    forcerm: true,
  });
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, (error, lines: readonly { error?: string }[] | null) => {
      const failed = lines?.find((line) => line.error !== undefined)?.error;
      if (error !== null || failed !== undefined) reject(error ?? new Error(failed));
      else resolve();
    });
  });
  return tag;
}
