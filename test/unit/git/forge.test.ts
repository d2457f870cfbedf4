import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { openPullRequest } from "../../../activities/git/forge.ts";
import { forgeOf } from "../../../activities/config/forge-place.ts";
import { ForgeRefusal } from "../../../activities/git/forge-calls.ts";
import { readPorcelain } from "../../../activities/git/push.ts";
import { createFakeForge, type FakeForge } from "../../support/fake-forge.ts";
import { listen } from "../../support/listen.ts";

const request = { branch: "longhaul/a", into: "main", title: "Do it", body: "Done.", draft: true };

async function withForge(use: (forge: FakeForge, origin: string) => Promise<void>): Promise<void> {
  const forge = createFakeForge("secret", () => ["main", "longhaul/a"]);
  const port = await listen(createServer((asked, answer) => void forge.handle(asked, answer)));
  await use(forge, `http://127.0.0.1:${port}`);
}

describe.each(["github", "gitlab"] as const)("a pull request on %s", (kind) => {
  const callTo = (origin: string, token = "secret") => ({
    place: forgeOf(`${origin}/acme/app.git`, kind) ?? expect.fail("no forge"),
    token,
    signal: new AbortController().signal,
  });

  it("is created once, and updated by the next run", () =>
    withForge(async (forge, origin) => {
      const first = await openPullRequest(callTo(origin), request);
      expect(first).toMatchObject({ number: 1, created: true });
      const again = await openPullRequest(callTo(origin), { ...request, body: "More." });
      expect(again).toEqual({ ...first, created: false });
      expect(forge.requests).toMatchObject([
        { branch: "longhaul/a", into: "main", body: "More.", draft: true },
      ]);
    }));

  it("is found again if it was created between the lookup and the creation", () =>
    withForge(async (forge, origin) => {
      await openPullRequest(callTo(origin), request);
      forge.blindLookups = 1;
      expect(await openPullRequest(callTo(origin), request)).toMatchObject({ number: 1, created: false });
      expect(forge.requests).toHaveLength(1);
    }));

  it("is refused with the forge's own message", () =>
    withForge(async (_forge, origin) => {
      const missing = openPullRequest(callTo(origin), { ...request, into: "gone" });
      await expect(missing).rejects.toThrow(/422.*Validation Failed/);
      const refused = await openPullRequest(callTo(origin, "wrong"), request).catch(
        (error: unknown) => error,
      );
      expect(refused).toBeInstanceOf(ForgeRefusal);
      expect(refused).toMatchObject({ status: 401, isPassing: false });
    }));
});

it("finds the forge by the host's name, or else by the setting", () => {
  const place = (url: string, forge: "auto" | "github" | "gitlab" = "auto") => forgeOf(url, forge);
  expect(place("https://github.com/acme/app.git")).toEqual({
    kind: "github",
    api: "https://api.github.com",
    project: "acme/app",
  });
  expect(place("git@gitlab.example.org:group/sub/app.git")).toEqual({
    kind: "gitlab",
    api: "https://gitlab.example.org/api/v4",
    project: "group/sub/app",
  });
  expect(place("https://code.example.org/acme/app")).toBeUndefined();
  expect(place("https://code.example.org/acme/app", "github")?.api).toBe("https://code.example.org/api/v3");
  expect(place("file:///srv/acme/app")).toBeUndefined();
});

it("reads a push's outcome by its flag, not by its text", () => {
  const out = (line: string) => `To https://host/app\n${line}\nDone\n`;
  const ref = "refs/heads/b";
  expect(readPorcelain(out(`*\tabc:${ref}\t[new branch]`), ref)?.flag).toBe("*");
  expect(readPorcelain(out(`=\tabc:${ref}\t[up to date]`), ref)?.flag).toBe("=");
  expect(readPorcelain(out(`!\tabc:${ref}\t[rejected] (fetch first)`), ref)).toEqual({
    flag: "!",
    summary: "[rejected] (fetch first)",
  });
  expect(readPorcelain("", ref)).toBeUndefined();
});
