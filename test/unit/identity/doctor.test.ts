import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { expect, it } from "vitest";
import { resolveConfig } from "../../../client/config/config.ts";
import { identityChecks } from "../../../client/setup/model-check.ts";
import { operatorPolicySchema } from "../../../activities/config/operator-policy.ts";
import { textOf } from "../../architecture/sources.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const [manual = ""] =
  /(?<=```yaml\n# the file that LONGHAUL_POLICY names\n)[^]*?(?=```)/.exec(textOf("docs/identity.md")) ?? [];

const claims = Buffer.from(JSON.stringify({ upn: "bot@corp.example", tid: "t-1" })).toString("base64url");
const load = async (name: string) => {
  if (name === "@azure/identity")
    return {
      DefaultAzureCredential: class {
        getToken = async () => ({ token: `head.${claims}.sign`, expiresOnTimestamp: Date.now() + 60_000 });
      },
    };
  throw Object.assign(new Error(name), { code: "ERR_MODULE_NOT_FOUND" });
};

function policy(text: string): string {
  const file = join(emptyFolder(), "policy.yaml");
  writeFileSync(file, text);
  return file;
}

it("the manual's policy file can be used", () => {
  expect(Object.keys(operatorPolicySchema.parse(parse(manual)).providers ?? {})).toHaveLength(6);
});

it("doctor asks each source, and says who it is or what to install, never the token", async () => {
  const file = policy(`providers:
  azure-id: { preset: azure, resource: r1, auth: { kind: azure } }
  bedrock: { preset: bedrock-claude, region: eu-central-1, auth: { kind: aws-bedrock } }
  vertex: { preset: vertex-gemini, project: p1, region: global, auth: { kind: google } }
  corp: { baseUrl: https://llm.corp.example/v1, auth: { kind: command, command: [sh, -c, "echo opaque-token"] } }
`);
  const environment = {
    PATH: process.env["PATH"],
    LONGHAUL_POLICY: file,
    AWS_BEARER_TOKEN_BEDROCK: "lasting-key",
  };
  const checks = await identityChecks(environment, { load });
  expect(checks).toEqual([
    { name: "identity at azure-id", ok: true, found: "upn bot@corp.example, tenant t-1" },
    { name: "identity at bedrock", ok: true, found: "the key in AWS_BEARER_TOKEN_BEDROCK" },
    {
      name: "identity at vertex",
      ok: false,
      found: expect.stringContaining("npm install google-auth-library") as string,
    },
    { name: "identity at corp", ok: true, found: "its token names nobody" },
  ]);
  expect(JSON.stringify(checks)).not.toMatch(/opaque-token|lasting-key|head\./);
  expect(await identityChecks({}, { load })).toEqual([]);
});

it("a shell with the policy knows its providers, without their identities", () => {
  const environment = { LONGHAUL_POLICY: policy(manual) };
  const { run } = resolveConfig(
    { model: "bedrock/eu.anthropic.claude-opus-4-6-v1" },
    environment,
    emptyFolder(),
  );
  expect(run).toMatchObject({ api: "messages", provider: { name: "bedrock", region: "eu-central-1" } });
  expect(run.price).toBeDefined();
  expect(JSON.stringify(run)).not.toContain("aws-bedrock");
});
