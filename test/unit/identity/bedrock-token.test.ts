import { expect, it } from "vitest";
import { bedrockToken, bedrockTokens } from "../../../activities/model/identity/clouds.ts";
import { isSignedBy } from "../../support/cloud-server.ts";

const NOW = Date.parse("2026-11-26T04:05:06.000Z");
const LASTING = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const PASSING = {
  accessKeyId: "ASIAEXAMPLE",
  secretAccessKey: "s/+e",
  sessionToken: "IQoJb3JpZ2luX2VjEPr//////////wEaCXVzLWVhc3QtMSJ+/=",
};

/** What the official generator made at that time: @aws/bedrock-token-generator 1.1, run beside this project. */
const OFFICIAL = [
  [LASTING, "us-east-1", "41244013cfacfb24b017bebc9a72dd1ccb30e628edc5d0acaec1c2018d1f81fd"],
  [LASTING, "eu-central-1", "60005980d6fd256a18938ebdadcca80cc67ab0439d4de1fa42090300cfe04028"],
  [PASSING, "us-east-1", "f88c15bc88b32ac3a11f7696167c07aa78cb96ae9c9468067bf76bdaf191d72b"],
  [PASSING, "eu-central-1", "e65220c90865520d514738ccfad4d1368013cfbc443466217b8fb749c5ee58b9"],
] as const;

it.each(OFFICIAL)(
  "is the official generator's, byte for byte: %o in %s",
  (credentials, region, signature) => {
    const { accessKeyId, sessionToken } = { sessionToken: undefined, ...credentials };
    const security =
      sessionToken === undefined ? "" : `&X-Amz-Security-Token=${encodeURIComponent(sessionToken)}`;
    const url = `bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${accessKeyId}%2F20261126%2F${region}%2Fbedrock%2Faws4_request&X-Amz-Date=20261126T040506Z&X-Amz-Expires=43200${security}&X-Amz-Signature=${signature}&X-Amz-SignedHeaders=host&Version=1`;
    const { token, expiresAt } = bedrockToken(credentials, region, NOW);
    expect(token).toBe(`bedrock-api-key-${Buffer.from(url).toString("base64")}`);
    expect(expiresAt).toBe(NOW + 12 * 3_600_000);
    expect(isSignedBy(token, credentials.secretAccessKey)).toBe(true);
    expect(isSignedBy(token, "another")).toBe(false);
  },
);

it("ends with the credentials that it was made of", () => {
  const expiration = new Date(NOW + 900_000);
  expect(bedrockToken({ ...PASSING, expiration }, "us-east-1", NOW).expiresAt).toBe(NOW + 900_000);
  expect(() => bedrockToken({ ...PASSING, expiration }, "us-east-1", NOW + 900_000)).toThrow("expired");
});

const missing = () =>
  Promise.reject(Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" }));
const sourceOf = (
  environment: Record<string, string>,
  more: { profile?: string; load?: () => Promise<unknown> } = {},
) =>
  bedrockTokens({ region: "us-east-1", environment, now: () => NOW, load: missing, ...more })(
    new AbortController().signal,
  );
const environment = { AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: LASTING.secretAccessKey };

it("needs no package for credentials in the environment, and none for a lasting key", async () => {
  expect((await sourceOf(environment)).token).toBe(bedrockToken(LASTING, "us-east-1", NOW).token);
  expect((await sourceOf({ AWS_BEARER_TOKEN_BEDROCK: "lasting" })).token).toBe("lasting");
});

it("names the install command where the package for other credentials is missing", async () => {
  const install = { fix: expect.stringContaining("npm install @aws-sdk/credential-provider-node") as string };
  await expect(sourceOf({})).rejects.toMatchObject({ isPermanent: true, ...install });
  await expect(sourceOf(environment, { profile: "ml" })).rejects.toMatchObject(install);
});

it("reads a profile anew each time, so that a renewed sign-on is used", async () => {
  const asked: object[] = [];
  const load = async () => ({
    defaultProvider: (init: object) => async () => {
      asked.push(init);
      return { ...PASSING, accessKeyId: `ASIA${asked.length}` };
    },
  });
  const tokens = [await sourceOf(environment, { profile: "ml", load }), await sourceOf({}, { load })];
  expect(asked).toEqual([{ ignoreCache: true, profile: "ml" }, { ignoreCache: true }]);
  expect(
    tokens.map(({ token }) => /ASIA\d/.exec(Buffer.from(token.slice(16), "base64").toString())?.[0]),
  ).toEqual(["ASIA1", "ASIA2"]);
});
