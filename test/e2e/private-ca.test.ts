/** A model server whose certificate's authority only a variable names, with a real worker. */
import { expect, it } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { modelRequest } from "../support/model-request.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { behindTls, issueCertificate } from "../support/private-authority.ts";

const database = useDatabase(5);

it.each(["NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"])(
  "is trusted by a worker with %s, and not without",
  { tags: ["S21"] },
  async (variable) => {
    const session = await startKillableSession(database, scriptedModel().says("Trusted."));
    const { authority, key, certificate } = issueCertificate();
    const baseUrl = `${await behindTls(session.model.baseUrl, key, certificate)}/v1`;

    const environment = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: baseUrl };
    const stranger = createAiSdkModel({ environment, mask: (text) => text });
    await expect(
      stranger.ask(modelRequest(), () => undefined, new AbortController().signal),
    ).rejects.toMatchObject({ class: "rejected", message: expect.stringContaining("certificate") });

    await session.startWorker({ OPENAI_BASE_URL: baseUrl, [variable]: authority });
    expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Trusted." });
  },
);
