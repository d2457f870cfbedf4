import { expect, it } from "vitest";
import {
  KeptToken,
  TokenTrouble,
  type TokenSource,
} from "../../../activities/model/identity/token-source.ts";

const signal = new AbortController().signal;

function kept(source: TokenSource, askMs = 5_000) {
  const time = { now: 1_000_000 };
  const seen: string[] = [];
  const token = new KeptToken({
    source,
    name: "providers.corp (command)",
    fix: "Sign in again.",
    onToken: (given) => seen.push(given),
    mask: (text) => text.replaceAll("hunter22", "***"),
    now: () => time.now,
    askMs,
  });
  return { token, time, seen };
}

/** Tokens t1, t2, … each good for 1,000 ms. */
function counted() {
  let count = 0;
  const at = { time: () => 0 };
  const source: TokenSource = async () => ({ token: `t${(count += 1)}`, expiresAt: at.time() + 1_000 });
  return { source, at };
}

it("is renewed at 80 % of its life, and not before", async () => {
  const { source, at } = counted();
  const { token, time, seen } = kept(source);
  at.time = () => time.now;
  expect(await token.get(signal)).toBe("t1");
  time.now += 799;
  expect(await token.get(signal)).toBe("t1");
  time.now += 1;
  expect(await token.get(signal)).toBe("t2");
  expect(seen).toEqual(["t1", "t2"]);
});

it("is asked for once, however many sessions start with none", async () => {
  let asked = 0;
  let give: (token: string) => void = () => undefined;
  const { token } = kept(async () => {
    asked += 1;
    return { token: await new Promise<string>((resolve) => (give = resolve)), expiresAt: Infinity };
  });
  const all = Array.from({ length: 50 }, () => token.get(signal));
  const [left] = [new AbortController()];
  const leaving = token.get(left.signal);
  left.abort(new Error("cancelled"));
  // One that leaves takes nothing from the others.
  await expect(leaving).rejects.toThrow("cancelled");
  give("t1");
  expect(new Set(await Promise.all(all))).toEqual(new Set(["t1"]));
  expect(asked).toBe(1);
});

it("is asked for once after many requests were refused with the same token", async () => {
  const { source, at } = counted();
  const { token, time, seen } = kept(source);
  at.time = () => time.now;
  await token.get(signal);
  expect(await Promise.all([token.get(signal, "t1"), token.get(signal, "t1")])).toEqual(["t2", "t2"]);
  expect(await token.get(signal, "t1")).toBe("t2");
  expect(seen).toEqual(["t1", "t2"]);
});

it("is used to its end while its source is away", async () => {
  let isAway = false;
  const { token, time } = kept(async () => {
    if (isAway) throw new Error("connect ECONNREFUSED");
    return { token: "t1", expiresAt: 1_001_000 };
  });
  await token.get(signal);
  isAway = true;
  time.now += 900;
  expect(await token.get(signal)).toBe("t1");
  time.now += 100;
  await expect(token.get(signal)).rejects.toMatchObject({ class: "unavailable" });
});

it("fails for a while twice, then for good, so that a fallback model takes over", async () => {
  let isAway = true;
  const { token } = kept(async () => {
    if (isAway) throw new Error("<html>hunter22</html>");
    return { token: "t1", expiresAt: Infinity };
  });
  const classes: unknown[] = [];
  for (let time = 0; time < 4; time += 1)
    classes.push(await token.get(signal).catch((error: { class: string }) => error.class));
  expect(classes).toEqual(["unavailable", "unavailable", "credentials", "credentials"]);
  await expect(token.get(signal)).rejects.toThrow(
    "providers.corp (command) gives no token: <html>***</html>. Nothing was asked. Sign in again.",
  );
  isAway = false;
  expect(await token.get(signal)).toBe("t1");
});

it("fails at once for good where asking again cannot help", async () => {
  const { token } = kept(async () => {
    throw new TokenTrouble("the package x is not installed", { fix: "npm install x", isPermanent: true });
  });
  await expect(token.get(signal)).rejects.toMatchObject({
    class: "credentials",
    message: expect.stringContaining("npm install x") as string,
  });
});

it("waits no longer than it says for a source that hangs", async () => {
  const { token } = kept(() => new Promise(() => undefined), 20);
  await expect(token.get(signal)).rejects.toThrow("no answer in 0.02 s");
});

it("is not taken if it has already expired, which a wrong clock does", async () => {
  const { token } = kept(async () => ({ token: "t1", expiresAt: 999_000 }));
  await expect(token.get(signal)).rejects.toThrow(/already expired.*clock/);
});
