/** `serve` behind the real nginx with its default settings. */
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../client/setup/processes.ts";
import { longhaul, starting, untilStatus } from "../support/commands/longhaul.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";

const PROGRAM = "/usr/sbin/nginx";

async function behindNginx(upstream: string, port: number): Promise<string> {
  const folder = emptyFolder();
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `${process.getuid?.() === 0 ? "user root;" : ""} daemon off; pid ${join(folder, "pid")}; error_log stderr; events {}
http { access_log off; ${paths.join(" ")} server { listen 127.0.0.1:${port}; location / { proxy_pass ${upstream}; } } }`,
  );
  const child = spawn(PROGRAM, ["-p", folder, "-c", file], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGTERM"));
  const url = `http://127.0.0.1:${port}`;
  await eventually("nginx listens", () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  );
  return url;
}

describe.skipIf(!existsSync(PROGRAM))(`behind nginx (${PROGRAM}, of the package nginx-light)`, () => {
  test("the page is let in, and events arrive while the session is at work", async () => {
    const port = await freePort();
    const server = starting(["serve", "--port", "0", "--behind", `http://127.0.0.1:${port}`]);
    onTestFinished(async () => {
      server.kill("SIGTERM");
      await server.ended;
    });
    const line = await eventually("the address", () => /^http.*$/m.exec(server.out())?.[0], 30_000);
    const { origin, hash } = new URL(line);
    const url = await behindNginx(origin, port);
    const headers = { authorization: `Bearer ${hash.slice(1)}` };
    expect((await fetch(`${url}/v1/sessions`, { headers: { ...headers, origin: url } })).status).toBe(200);
    expect(
      (await fetch(`${url}/v1/sessions`, { headers: { ...headers, origin: "http://evil.example" } })).status,
    ).toBe(403);

    const started = await longhaul(["start", "run: while [ ! -e go ]; do sleep 0.1; done\nsay: Done."]);
    expect(started, started.err).toMatchObject({ code: 0 });
    const id = started.out.trim();
    onTestFinished(async () => void (await longhaul(["cancel", id])));
    const response = await fetch(`${url}/v1/sessions/${id}/events`, { headers });
    let heard = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      heard += piece;
      if (heard.includes('"while [ ! -e go ]')) break;
    }
    // The command waits for ever: its event was not held back until the end.
    await untilStatus(id, ({ endedAt }) => endedAt === null);
    expect(heard).toContain("while [ ! -e go ]");
  });
});
