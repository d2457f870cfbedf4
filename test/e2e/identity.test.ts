/** A real worker that asks a model with the token that a command prints, and what remains of that token. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startCloud } from "../support/cloud-server.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { wholeDatabase, wholeHistory } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

it("asks where its policy says, whatever the session says, and shows the token to nobody", async () => {
  const script = scriptedModel()
    .replies(() => ({ parts: [call("bash", { command: `echo leaked ${cloud.tokens.at(-1)}` })] }))
    .says("Done.");
  const cloud = await startCloud("bedrock-open", script);
  const policy = join(emptyFolder(), "policy.yaml");
  const auth = { kind: "command", command: ["sh", "-c", "date +corp-token-%s%N"] };
  const corp = { baseUrl: `${cloud.origin}/v1`, api: "chat", auth };
  writeFileSync(policy, JSON.stringify({ providers: { corp } }));

  const session = await startKillableSession(database, scriptedModel(), {
    config: {
      model: "corp/gpt-4o",
      modelName: "gpt-4o",
      provider: { name: "corp", baseUrl: "https://elsewhere.example/v1" },
      api: "responses",
    },
  });
  const worker = await session.startWorker({ LONGHAUL_POLICY: policy });
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });

  const [token = ""] = cloud.tokens;
  expect(token).toMatch(/^corp-token-\d{19}$/);
  const kept = [await wholeDatabase(database.store), await wholeHistory(session.handle), worker.log()];
  expect(kept[0]).toContain("leaked");
  for (const text of kept) expect(text).not.toContain(token);
  // Each request comes after the one before: the second shows the model its own call, masked.
  expect(JSON.stringify(cloud.taken.at(-1)?.body)).not.toContain(token);
});
