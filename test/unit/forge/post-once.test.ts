import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import { makeMark, postIn, postOnce, replyOnce } from "../../../activities/forge/post-once.ts";
import { listen } from "../../support/listen.ts";

const key = "a key of this installation";

describe("a mark", () => {
  it("is found again in a comment, with whatever stands around it", () => {
    const mark = makeMark(key, "s1.follow-2");
    expect(mark).toMatch(/^<!-- longhaul s1\.follow-2 [0-9a-f]{16} -->$/);
    expect(postIn(key, `Done.\r\n\r\n${mark}\r\n`)).toBe("s1.follow-2");
    expect(postIn(key, `> ${makeMark("other", "x")}\n${mark}`)).toBe("s1.follow-2");
  });

  it("counts for nothing if somebody else made it, or for another post", () => {
    const [, , , hash = ""] = makeMark(key, "one").split(" ");
    expect(postIn(key, makeMark("another key", "one"))).toBeUndefined();
    expect(postIn(key, `<!-- longhaul two ${hash} -->`)).toBeUndefined();
    expect(postIn(key, `<!-- longhaul one ${hash.slice(1)} -->`)).toBeUndefined();
    expect(postIn(key, "No mark.")).toBeUndefined();
  });

  it.each(["", "a b", "a-->b", "<", "a\nb", "x".repeat(201)])("cannot have the id %j", (id) => {
    expect(() => makeMark(key, id)).toThrow(RangeError);
  });
});

describe.each(["github", "gitlab", "gitea"] as const)("a post on %s", (kind) => {
  /** Keeps comments; `losing` of the answers get lost after the comment is kept. */
  async function onForge(losing: number) {
    const kept: { readonly id: number; readonly body: string }[] = [];
    let left = losing;
    const server = createServer((asked, answer) => {
      void (async () => {
        const sent = await text(asked);
        const isThread = asked.url?.includes("/discussions") === true;
        const rows = kept.map((one) => ({
          ...one,
          user: null,
          author: null,
          updated_at: "2026-11-27T08:00:00Z",
          resolvable: isThread,
        }));
        if (asked.method === "GET") {
          const body = isThread ? [{ id: "d1", notes: rows }] : rows;
          return void answer.end(JSON.stringify(body));
        }
        const one = { id: kept.length + 1, body: (JSON.parse(sent) as { readonly body: string }).body };
        kept.push(one);
        left -= 1;
        if (left >= 0) return void asked.socket.destroy();
        answer.writeHead(201).end(JSON.stringify(one));
      })();
    });
    const call = {
      forge:
        parseForge(`http://127.0.0.1:${await listen(server)}/acme/app.git`, kind) ?? expect.fail("no forge"),
      token: "secret",
      signal: AbortSignal.timeout(60_000),
    };
    return { call, kept };
  }
  const post = { key, id: "s1.done", text: "Done.", since: new Date("2026-11-27T08:00:30Z") };

  it("is written once, also if the answer gets lost", async () => {
    const { call, kept } = await onForge(1);
    await expect(postOnce(call, 4, post)).rejects.toMatchObject({ isPassing: true });
    expect(await postOnce(call, 4, post)).toBe(1);
    expect(await postOnce(call, 4, post)).toBe(1);
    expect(kept.map(({ body }) => body)).toEqual([`Done.\n\n${makeMark(key, "s1.done")}`]);
    expect(await postOnce(call, 4, { ...post, id: "s1.other" })).toBe(2);
  });

  it.runIf(kind === "gitlab")("answers in a thread once", async () => {
    const { call, kept } = await onForge(1);
    await expect(replyOnce(call, 4, "d1", post)).rejects.toMatchObject({ isPassing: true });
    expect(await replyOnce(call, 4, "d1", post)).toBe(1);
    expect(kept).toHaveLength(1);
  });
});
