/** Google's metadata server as a worker in its cloud meets it: away, slow, or with a proxy's page in its place. */
import { createServer, type ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { startCloud } from "../../support/cloud-server.ts";
import { worker } from "../../support/identity-worker.ts";
import { listen } from "../../support/listen.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const token = JSON.stringify({ access_token: "ya29.metadata", expires_in: 3_600 });

const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "is away": (response) => response.destroy(),
  "answers HTML": (response) => response.end("<html><title>Sign in</title></html>"),
  "answers HTML with an error": (response) => response.writeHead(502).end("<html>Bad gateway</html>"),
  "gives no token": (response) => response.end("{}"),
};

/** A worker whose Google library asks a metadata server over HTTP. */
async function inCloud(answer: (response: ServerResponse, index: number) => void) {
  let asked = 0;
  const port = await listen(createServer((_, response) => answer(response, (asked += 1) - 1)));
  const cloud = await startCloud("vertex-gemini", scriptedModel().says("Hi."), {
    models: { "gemini-3-pro": { window: 200_000 } },
  });
  class GoogleAuth {
    readonly getClient = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/computeMetadata/v1/token`);
      const given = (await response.json()) as { access_token?: string };
      return { getAccessToken: async () => ({ token: given.access_token }) };
    };
  }
  const google = { preset: "vertex-gemini", project: "p1", region: "europe-west4", auth: { kind: "google" } };
  const { ask } = worker({ vertex: google }, cloud.origin, { load: async () => ({ GoogleAuth }) });
  const go = () => ask("vertex/gemini-3-pro", {}, { vertex: { preset: "vertex-gemini" } });
  return { go, cloud, asked: () => asked };
}

it.each(Object.entries(answers))(
  "one that %s is an outage: the next attempt is answered",
  async (_, fail) => {
    const { go, cloud, asked } = await inCloud((response, index) =>
      index === 0 ? fail(response) : response.end(token),
    );
    await expect(go()).rejects.toMatchObject({
      class: "unavailable",
      message: expect.stringMatching(
        /providers\.vertex \(google\) gives no token.*Nothing was asked/,
      ) as string,
    });
    expect(cloud.taken).toEqual([]);
    expect(await go()).toMatchObject({ content: [{ text: "Hi." }] });
    expect(cloud.tokens).toEqual(["ya29.metadata"]);
    expect(asked()).toBe(2);
  },
);

it.each(Object.entries(answers))("one that %s three times is left to a fallback model", async (_, fail) => {
  const { go, cloud } = await inCloud(fail);
  const classes: unknown[] = [];
  for (let time = 0; time < 3; time += 1)
    classes.push(await go().catch((error: { class: string }) => error.class));
  expect(classes).toEqual(["unavailable", "unavailable", "credentials"]);
  expect(cloud.taken).toEqual([]);
});

it("one that answers slowly is waited for", async () => {
  const waiting: ServerResponse[] = [];
  const { go, cloud, asked } = await inCloud((response) => void waiting.push(response));
  const first = go();
  await expect.poll(() => waiting.length).toBe(1);
  waiting[0]?.end(token);
  expect(await first).toMatchObject({ content: [{ text: "Hi." }] });
  expect(asked()).toBe(1);
  expect(cloud.tokens).toEqual(["ya29.metadata"]);
});
