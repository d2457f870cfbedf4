/** A session's pages of the web: by its network rules, on record, and asked for where a name is not listed. */
import { expect, it } from "vitest";
import { startAgent } from "../support/agent-harness.ts";
import { perFile } from "../support/per-file.ts";
import { untilWaiting } from "../support/questions.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { startWeb } from "../support/web.ts";

const web = perFile(
  () => startWeb({ http: (_request, response) => void response.end("the page's text") }),
  (served) => served.close(),
);
const agent = perFile(() => startAgent({ web: web.network }));
const page = (host: string) => ({ url: `http://${host}/page` });

it("asks a person about a name that is not listed, and reads the page once it is allowed", async () => {
  const script = scriptedModel()
    .calls("web_fetch", page("listed.example"))
    .calls("web_fetch", page("other.example"))
    .calls("web_fetch", page("other.example"))
    .says("Read.");
  const sandbox = { network: "listed" as const, domains: ["listed.example"], askForDomains: true };
  const session = await agent.start(script, { config: { sandbox } });
  const asked = await session.until("question:asked");
  expect(asked.data).toMatchObject({ id: "s2c0e", kind: "egress" });
  expect(asked.data.text).toContain("other.example");
  await untilWaiting(agent.database.store, session);
  await session.handle.executeUpdate("answerQuestion", {
    args: [{ question: "s2c0e", action: "allow", by: "Ada" }],
  });
  expect(await session.result()).toMatchObject({ result: "Read." });
  const [first = "", second = "", third = ""] = await resultTexts(agent.database.store, session.id);
  expect(first).toContain("the page's text");
  expect(second).toContain("other.example is not among the names");
  expect(second).toContain(`longhaul allow ${session.id} NAME`);
  expect(third).toContain("the page's text");
  expect(await session.dataOf("egress:denied")).toMatchObject([
    { host: "other.example", port: 80, reason: "blocked-by-allowlist", count: 1 },
  ]);
  const fetched = { bytes: "the page's text".length, status: 200 };
  expect(await session.dataOf("web:fetched")).toEqual([
    { host: "listed.example", ...fetched },
    { host: "other.example", ...fetched },
  ]);
});

it("reads nothing in a session without a network", async () => {
  const session = await agent.run(scriptedModel().calls("web_fetch", page("listed.example")).says("Done."));
  const [text = ""] = await resultTexts(agent.database.store, session.id);
  expect(text).toContain("sandbox.network: none");
  expect(await session.dataOf("web:fetched")).toEqual([]);
});
