/** Which comments the agent hears, by the answers of GitHub and GitLab: strangers direct nothing, and nothing is heard twice. */
import { createServer } from "node:http";
import type { MergeRequestNoteSchema } from "@gitbeaker/core";
import type { components } from "@octokit/openapi-types";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import { followSchema } from "../../../activities/config/follow-settings.ts";
import { heardPosts, readSpoken } from "../../../activities/follow/conversation.ts";
import { askTrust } from "../../../activities/follow/trust.ts";
import { adapterFor } from "../../../activities/forge/forges.ts";
import { makeMark } from "../../../activities/forge/post-once.ts";
import type { Some } from "../../support/forge/some.ts";
import { listen } from "../../support/listen.ts";

type GitHub = components["schemas"];

const KEY = "key";
const OPENED = "2026-11-27T08:00:00Z";
const LATER = "2026-11-27T09:00:00Z";
const people = { ann: 1, eve: 2, bot: 3, gone: 4, "acme-bot": 9 } as const;
type Person = keyof typeof people;
/** Only she may write. */
const WRITER: Person = "ann";

interface Said {
  readonly by: Person;
  readonly text: string;
  readonly at?: string;
  readonly isBot?: boolean;
}

const githubComment = ({ by, text, at = LATER, isBot = false }: Said, index: number) =>
  ({
    id: index + 1,
    user: by === "gone" ? null : { id: people[by], login: by, type: isBot ? "Bot" : "User" },
    body: text,
    updated_at: at,
  }) satisfies Some<GitHub["issue-comment"]>;

const gitlabNote = ({ by, text, at = LATER }: Said, index: number) =>
  ({
    id: index + 1,
    author: { id: people[by], username: by },
    body: text,
    system: false,
    resolvable: false,
    updated_at: at,
  }) satisfies Some<MergeRequestNoteSchema>;

const newestFirst = <T>(rows: readonly T[], query: URLSearchParams): readonly T[] =>
  query.get("sort") === "asc" ? rows : rows.toReversed();

/** Answers as GitHub and GitLab do, and counts what it is asked. */
async function forgeWith(kind: "github" | "gitlab", said: readonly Said[], may: (login: string) => boolean) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    const url = new URL(request.url ?? "/", "http://forge");
    const path = url.pathname.replace(/^\/api\/(v3|v4)/, "");
    asked.push(path);
    const send = (status: number, value: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const [, login = ""] = /\/collaborators\/([^/]+)\/permission$/.exec(path) ?? [];
    const [, member = ""] = /\/members\/all\/(\d+)$/.exec(path) ?? [];
    const since = Date.parse(url.searchParams.get("since") ?? "1970-01-01");
    if (path.endsWith("/issues/1/comments"))
      return send(
        200,
        said.map(githubComment).filter(({ updated_at: at }) => Date.parse(at) >= since),
      );
    if (path.endsWith("/merge_requests/1/notes"))
      return send(200, newestFirst(said.map(gitlabNote), url.searchParams));
    if (path === "/api/graphql") return send(200, { data: { viewer: { databaseId: 9, login: "acme-bot" } } });
    if (path === "/user") return send(200, { id: 9, username: "acme-bot" });
    if (login !== "") {
      const permission = may(login) ? "write" : "read";
      return send(200, { permission, user: { id: people[login as Person] } });
    }
    if (member === "") return send(404, { message: "Not Found" });
    const name = Object.entries(people).find(([, id]) => String(id) === member)?.[0] ?? "";
    return may(name) ? send(200, { access_level: 30, state: "active" }) : send(404, { message: "404" });
  });
  const forge = parseForge(`http://127.0.0.1:${await listen(server)}/acme/app.git`, kind);
  const call = {
    forge: forge ?? expect.fail("no forge"),
    token: "secret",
    signal: AbortSignal.timeout(60_000),
  };
  return { call, forge: adapterFor(call), asked };
}

const row = { sessionId: "s", openedAt: new Date(OPENED), heardFrom: new Date(OPENED), posts: [] };

async function heard(
  kind: "github" | "gitlab",
  said: readonly Said[],
  more: {
    readonly settings?: object;
    readonly row?: Partial<typeof row> | { readonly posts: string[] };
    readonly told?: readonly number[];
    readonly may?: (login: string) => boolean;
  } = {},
) {
  const stand = await forgeWith(kind, said, more.may ?? ((login) => login === WRITER));
  const settings = followSchema.parse(more.settings ?? {});
  const reasons = (more.told ?? []).map((id) => ({ kind: "mention" as const, name: `mention:${id}` }));
  const spoken = await readSpoken(
    { ...stand, number: 1, settings, postKey: KEY, row: { ...row, ...more.row }, rounds: [{ reasons }] },
    askTrust({ ...stand, settings }),
  );
  return { spoken: spoken.map(({ id, wants }) => `${id} ${wants}`), texts: spoken, asked: stand.asked };
}

describe.each(["github", "gitlab"] as const)("comments on %s", (kind) => {
  it("are heard if somebody who may write mentions the agent, by either name", async () => {
    const { spoken } = await heard(kind, [
      { by: "ann", text: "@longhaul rename it" },
      { by: "ann", text: "I like it" },
      { by: "ann", text: "@acme-bot rename it" },
      { by: "ann", text: "/longhaul stop" },
    ]);
    expect(spoken).toEqual(["1 message", "3 message", "4 stop"]);
  });

  it.each([
    ["a stranger", { by: "eve", text: "@longhaul rename it" }],
    ["a stranger's command", { by: "eve", text: "/longhaul stop" }],
    ["somebody whose account is gone", { by: "gone", text: "@longhaul rename it" }],
    ["a person in code", { by: "ann", text: "`@longhaul rename it`" }],
    ["a person in a quotation", { by: "ann", text: "> @longhaul rename it" }],
    ["a person in what nobody sees", { by: "ann", text: "ok <!-- @longhaul rename it -->" }],
    ["an approval", { by: "ann", text: "/longhaul allow" }],
    ["ourselves", { by: "ann", text: `@longhaul rename it\n\n${makeMark(KEY, "s.reply-1")}` }],
  ] as const)("are not heard: %s", async (_what, said) => {
    expect((await heard(kind, [said])).spoken).toEqual([]);
  });

  it("are heard with a mark that somebody else has made", async () => {
    const forged = makeMark("another key", "s.reply-1");
    const { spoken, texts } = await heard(kind, [{ by: "ann", text: `@longhaul rename it ${forged}` }]);
    expect(spoken).toEqual(["1 message"]);
    expect(texts[0]?.text.trim()).toBe("@longhaul rename it");
  });

  it("are not heard from bots whose reviews count", async () => {
    const said = { by: "bot", text: "@longhaul rename it" } as const;
    const may = () => true;
    expect((await heard(kind, [said], { may })).spoken).toEqual(["1 message"]);
    expect((await heard(kind, [said], { may, settings: { reviewBots: [people.bot] } })).spoken).toEqual([]);
  });

  it("are heard once, however they are edited; an edit that first calls the agent is new", async () => {
    const said = [
      { by: "ann", text: "@longhaul rename it, and more", at: "2026-11-27T10:00:00Z" },
      { by: "ann", text: "I like it. @longhaul rename it", at: "2026-11-27T10:00:00Z" },
    ] as const;
    expect((await heard(kind, said, { told: [1] })).spoken).toEqual(["2 message"]);
  });

  it("are not heard from somebody whose right was withdrawn since", async () => {
    const said = [{ by: "ann", text: "@longhaul rename it" }] as const;
    expect((await heard(kind, said, { may: () => false })).spoken).toEqual([]);
  });

  it("command no follower that was begun after them, and none twice", async () => {
    const said = [
      { by: "ann", text: "/longhaul stop" },
      { by: "ann", text: "@longhaul rename it" },
    ] as const;
    const heardFrom = new Date("2026-11-27T11:00:00Z");
    expect((await heard(kind, said, { row: { heardFrom } })).spoken).toEqual(["2 message"]);
    expect((await heard(kind, said, { row: { posts: ["s.stopped-1"] } })).spoken).toEqual([
      "1 stop",
      "2 message",
    ]);
    const posts = heardPosts(["s.stopped-1", "s.stopped-label", "s.paused-1-2"]);
    expect(posts).toEqual(["s.heard-1", "s.heard-label", "s.paused-1-2"]);
    expect((await heard(kind, said, { row: { posts } })).spoken).toEqual(["2 message"]);
  });

  it("are heard by the configured name alone, and nobody is asked who we are", async () => {
    const said = [
      { by: "ann", text: "@robot rename it" },
      { by: "ann", text: "@longhaul and @acme-bot, see this" },
    ] as const;
    const { spoken, asked } = await heard(kind, said, { settings: { name: "robot" } });
    expect(spoken).toEqual(["1 message"]);
    expect(asked).toHaveLength(2);
  });

  it("cost one call where nobody calls anybody, and no more for a crowd of strangers", async () => {
    expect((await heard(kind, [{ by: "ann", text: "I like it" }])).asked).toHaveLength(1);
    const crowd = Array.from({ length: 60 }, () => ({ by: "eve", text: "@longhaul x" }) as const);
    expect((await heard(kind, crowd)).asked).toHaveLength(3);
  });
});

it("a bot of GitHub directs nothing, whatever it may", async () => {
  const said = [{ by: "ann", text: "@longhaul rename it", isBot: true }] as const;
  expect((await heard("github", said, { may: () => true })).spoken).toEqual([]);
});

it("a permission that cannot be asked for is no permission, and no refusal: it is asked again", async () => {
  const stand = await forgeWith("github", [{ by: "ann", text: "@longhaul x" }], () => true);
  const trust = {
    mayReview: () => Promise.resolve(false),
    mayDirect: () => Promise.reject(new Error("away")),
  };
  const from = { ...stand, number: 1, settings: {}, postKey: KEY, row, rounds: [] };
  await expect(readSpoken(from, trust)).rejects.toThrow("away");
});
