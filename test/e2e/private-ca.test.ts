/** A model server whose certificate's authority is only in NODE_EXTRA_CA_CERTS, with a real worker. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { modelRequest } from "../support/model-request.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { listen } from "../support/listen.ts";

const database = useDatabase(5);

/** A certificate authority, and its certificate for localhost. @returns paths */
function issueCertificate(): {
  readonly authority: string;
  readonly key: string;
  readonly certificate: string;
} {
  const folder = emptyFolder();
  const openssl = (...words: string[]) => execFileSync("openssl", words, { cwd: folder, stdio: "pipe" });
  const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  openssl("req", "-x509", ...fresh, "-subj", "/CN=Private authority", "-keyout", "ca.key", "-out", "ca.pem");
  const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "key.pem", "-out", "cert.pem"];
  openssl("req", "-x509", ...fresh, ...name, ...signed);
  return {
    authority: join(folder, "ca.pem"),
    key: join(folder, "key.pem"),
    certificate: join(folder, "cert.pem"),
  };
}

/** The same server behind TLS. @returns its address */
async function behindTls(plainUrl: string, key: string, certificate: string): Promise<string> {
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    (incoming, response) => {
      const { method, headers } = incoming;
      const upstream = request(new URL(incoming.url ?? "", plainUrl), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(upstream);
    },
  );
  return `https://localhost:${await listen(server)}/v1`;
}

it("is trusted by a worker with NODE_EXTRA_CA_CERTS, and not without [S21]", async () => {
  const session = await startKillableSession(database, scriptedModel().says("Trusted."));
  const { authority, key, certificate } = issueCertificate();
  const baseUrl = await behindTls(session.model.baseUrl, key, certificate);

  const environment = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: baseUrl };
  const stranger = createAiSdkModel({ environment, mask: (text) => text });
  await expect(
    stranger.ask(modelRequest(), () => undefined, new AbortController().signal),
  ).rejects.toMatchObject({ class: "unavailable", message: expect.stringContaining("certificate") });

  await session.startWorker({ OPENAI_BASE_URL: baseUrl, NODE_EXTRA_CA_CERTS: authority });
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Trusted." });
});
