import { hostname } from "node:os";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ModelError } from "../../../activities/model/model.ts";
import { toDeadlines, isOnThisMachine, Watchdog } from "../../../activities/model/watchdog.ts";
import { modelDeadlines } from "../../../activities/config/run-policy.ts";
import { configOf } from "../../support/run-config.ts";
import { modelRequest } from "../../support/model-request.ts";

const endpoint = { modelId: "m", apiKey: "k", baseUrl: undefined, headers: {}, query: {} };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watch(thinkingMs?: number) {
  const barks: ModelError[] = [];
  const hidden = vi.fn<() => void>();
  const deadlines = { connectMs: 100, firstTokenMs: 1_000, silenceMs: 300, answerMs: 20_000 };
  const all = thinkingMs === undefined ? deadlines : { ...deadlines, thinkingMs };
  const named = toDeadlines(modelRequest({ deadlines: all, model: "openai/gpt-4o" }), endpoint);
  const watchdog = new Watchdog(named, (error) => barks.push(error), hidden);
  /** It barks after this time, not a millisecond before. @returns why */
  const barksAfter = (ms: number) => {
    vi.advanceTimersByTime(ms - 1);
    expect(barks).toEqual([]);
    vi.advanceTimersByTime(1);
    return barks[0]?.message;
  };
  return { barks, watchdog, hidden, barksAfter };
}

describe("the watchdog", { tags: ["R32", "R33", "R34"] }, () => {
  it("waits for headers as long as connectMs", () => {
    const { barks, barksAfter } = watch();
    expect(barksAfter(100)).toContain("0.1 s (limits.connectTimeout)");
    expect(barks).toMatchObject([{ class: "silent" }]);
  });

  it("waits for the first token for firstTokenMs, counted from the headers", () => {
    const { watchdog, barksAfter } = watch();
    vi.advanceTimersByTime(90);
    watchdog.connected();
    expect(barksAfter(1_000)).toContain("limits.firstTokenTimeout");
  });

  it("restarts the wait after each piece", () => {
    const { watchdog, barksAfter } = watch();
    watchdog.connected();
    for (let piece = 0; piece < 10; piece += 1) {
      vi.advanceTimersByTime(299);
      watchdog.heard();
    }
    expect(barksAfter(300)).toContain("limits.silenceTimeout");
  });

  it("gives hidden thinking in mid-answer the time of a first token", () => {
    const { barks, watchdog } = watch();
    watchdog.connected();
    watchdog.heard();
    watchdog.thinking();
    vi.advanceTimersByTime(999);
    expect(barks).toEqual([]);
    watchdog.heard();
    vi.advanceTimersByTime(300);
    expect(barks).toHaveLength(1);
  });

  it("gives a model that was seen to reason more time, in and between all later pieces", () => {
    for (const isFirst of [true, false]) {
      const { barks, watchdog, barksAfter } = watch(2_000);
      watchdog.connected();
      if (!isFirst) watchdog.heard();
      watchdog.thinking();
      vi.advanceTimersByTime(999);
      for (let piece = 0; piece < 3; piece += 1) {
        watchdog.heard();
        vi.advanceTimersByTime(1_999);
      }
      watchdog.heard();
      expect(barks).toEqual([]);
      expect(barksAfter(2_000)).toContain("mid-answer for 2 s (limits.thinkingTimeout)");
    }
  });

  it("counts any byte as a sign of life, after the headers", () => {
    const { watchdog, barksAfter } = watch();
    watchdog.alive();
    vi.advanceTimersByTime(90);
    watchdog.connected();
    for (let comment = 0; comment < 5; comment += 1) {
      vi.advanceTimersByTime(900);
      watchdog.alive();
    }
    watchdog.heard();
    vi.advanceTimersByTime(200);
    watchdog.alive();
    expect(barksAfter(300)).toContain("limits.silenceTimeout");
  });

  it("reports once that bytes bring no piece for long, and again only after thoughts", () => {
    const { hidden, watchdog } = watch();
    watchdog.connected();
    const comments = (count: number) => {
      for (let comment = 0; comment < count; comment += 1) {
        vi.advanceTimersByTime(200);
        watchdog.alive();
      }
    };
    comments(24);
    expect(hidden).not.toHaveBeenCalled();
    comments(30);
    expect(hidden).toHaveBeenCalledTimes(1);
    watchdog.heard();
    comments(60);
    expect(hidden).toHaveBeenCalledTimes(1);
    watchdog.thinking();
    comments(60);
    expect(hidden).toHaveBeenCalledTimes(2);
  });

  it("reports no bytes of a slow server that carry a piece, whenever they come", () => {
    const pieces = fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: 0, max: 999 }), (gapsMs, readMs) => {
        const hidden = vi.fn<() => void>();
        const deadlines = { connectMs: 1e8, firstTokenMs: 1e8, silenceMs: 1e8, answerMs: 1e8 };
        const named = toDeadlines(modelRequest({ deadlines }), endpoint);
        const watchdog = new Watchdog(named, () => undefined, hidden);
        watchdog.connected();
        for (const ms of gapsMs) {
          vi.advanceTimersByTime(ms);
          watchdog.alive();
          vi.advanceTimersByTime(readMs);
          watchdog.heard();
        }
        watchdog.stop();
        vi.advanceTimersByTime(10_000);
        expect(hidden).not.toHaveBeenCalled();
      }),
    );
  });

  it("ends an answer longer than answerMs, even while it streams", () => {
    const { barks, watchdog } = watch();
    watchdog.connected();
    for (let ms = 0; ms < 20_000; ms += 100) {
      expect(barks).toEqual([]);
      watchdog.heard();
      vi.advanceTimersByTime(100);
    }
    expect(barks).toMatchObject([
      { class: "too-long", message: expect.stringContaining("20 s (limits.modelTimeout)") },
    ]);
  });

  it("does nothing once stopped, and fires once", () => {
    const stopped = watch();
    stopped.watchdog.stop();
    const left = watch();
    vi.advanceTimersByTime(30_000);
    expect(stopped.barks).toEqual([]);
    expect(left.barks).toHaveLength(1);
  });
});

describe("deadlines", () => {
  const deadlines = { connectMs: 30, firstTokenMs: 180, silenceMs: 90, answerMs: 600 };
  const local = { ...endpoint, baseUrl: "http://127.0.0.1:11434/v1" };

  it("give a local server the configured time of a first token for its headers", () => {
    expect(toDeadlines(modelRequest({ deadlines }), endpoint)).toMatchObject(deadlines);
    expect(toDeadlines(modelRequest({ deadlines }), local)).toMatchObject({
      connectMs: 180,
      settings: { connect: "limits.firstTokenTimeout" },
    });
  });

  it.each([
    "http://127.0.0.1:11434/v1",
    "http://localhost:8080",
    "http://[::1]:8000/v1",
    "http://0.0.0.0:1234/v1",
    "http://host.docker.internal:11434/v1",
    `http://${hostname()}:11434/v1`,
  ])("of %s, a server of this machine, are that of the whole answer until its first piece", (baseUrl) => {
    const usual = modelDeadlines(configOf({}), 0);
    const ofAnswer = { connect: "limits.modelTimeout", firstToken: "limits.modelTimeout" };
    const { answerMs } = usual;
    expect(toDeadlines(modelRequest({ deadlines: usual }), { ...endpoint, baseUrl })).toMatchObject({
      connectMs: answerMs,
      firstTokenMs: answerMs,
      silenceMs: 90_000,
      thinkingMs: 300_000,
      settings: ofAnswer,
    });
    const elsewhere = { ...endpoint, baseUrl: "http://192.0.2.9:11434/v1" };
    expect(toDeadlines(modelRequest({ deadlines: usual }), elsewhere)).toMatchObject(usual);
    const ofProvider = (timeouts: object) =>
      toDeadlines(modelRequest({ deadlines: usual, provider: { name: "acme", timeouts } }), local);
    expect(ofProvider({ firstToken: 7_000 })).toMatchObject({ connectMs: 7_000, firstTokenMs: 7_000 });
    expect(ofProvider({ connect: 3_000 })).toMatchObject({ connectMs: 3_000, firstTokenMs: answerMs });
  });

  it("count a server as this machine's by its name or any of its addresses, and no other", () => {
    const machine = {
      name: "Desk",
      interfaces: {
        eth0: [
          { address: "192.168.1.20", family: "IPv4" },
          { address: "2001:db8::20", family: "IPv6" },
          { address: "fe80::1%eth0", family: "IPv6" },
        ],
        gone: undefined,
      },
    };
    const isOurs = (host: string) => isOnThisMachine(`http://${host}:11434/v1`, machine);
    for (const host of ["192.168.1.20", "[2001:db8::20]", "[2001:DB8:0:0::20]", "desk", "DESK.local"])
      expect([host, isOurs(host)]).toEqual([host, true]);
    for (const host of [
      "192.168.1.21",
      "192.168.1.2",
      "[2001:db8::21]",
      "desk.example.org",
      "desktop",
      "desk2.local",
    ])
      expect([host, isOurs(host)]).toEqual([host, false]);
    expect(isOnThisMachine("not an address", machine)).toBe(false);
  });

  it("let a local server read a request for minutes, and name the setting that ends it", () => {
    const barks: ModelError[] = [];
    const usual = modelDeadlines(configOf({}), 0);
    const named = toDeadlines(modelRequest({ deadlines: usual }), local);
    const start = () => new Watchdog(named, (error) => barks.push(error), vi.fn<() => void>());
    start();
    vi.advanceTimersByTime(usual.answerMs - 1);
    expect(barks).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(barks).toMatchObject([
      { class: "too-long", message: expect.stringContaining("585 s (limits.modelTimeout)") },
    ]);
    barks.length = 0;
    const connected = start();
    connected.connected();
    vi.advanceTimersByTime(500_000);
    connected.heard();
    vi.advanceTimersByTime(84_999);
    expect(barks).toEqual([]);
    connected.stop();
  });

  it("give a thinking model the time of a first token for its silences", () => {
    const thinking = modelRequest({ deadlines, reasoning: { effort: "high" } });
    expect(toDeadlines(thinking, endpoint)).toMatchObject({
      silenceMs: 180,
      settings: { silence: "limits.firstTokenTimeout" },
    });
    expect(toDeadlines(modelRequest({ deadlines, thinks: true }), endpoint).silenceMs).toBe(180);
    const unthinking = modelRequest({ deadlines, thinks: true, reasoning: { effort: "none" } });
    expect(toDeadlines(unthinking, endpoint).silenceMs).toBe(90);
  });

  it("give a thinking model its own time for its silences, and never less than for a first token", () => {
    const silence = (thinkingMs: number, more: object = {}) =>
      toDeadlines(modelRequest({ deadlines: { ...deadlines, thinkingMs }, thinks: true, ...more }), endpoint);
    expect(silence(300)).toMatchObject({ silenceMs: 300, settings: { silence: "limits.thinkingTimeout" } });
    expect(silence(100)).toMatchObject({ silenceMs: 180, settings: { silence: "limits.firstTokenTimeout" } });
    const slow = { provider: { name: "acme", timeouts: { firstToken: 600 } } };
    expect(silence(300, slow)).toMatchObject({
      silenceMs: 600,
      settings: { silence: "providers.acme.timeouts.firstToken" },
    });
    expect(modelDeadlines(configOf({}), 0)).toMatchObject({ silenceMs: 90_000, thinkingMs: 300_000 });
  });

  it("are the provider's own if configured, and are named in errors", () => {
    const provider = { name: "acme", timeouts: { connect: 1, firstToken: 2, silence: 3 } };
    expect(toDeadlines(modelRequest({ deadlines, provider, thinks: true }), local)).toMatchObject({
      connectMs: 1,
      firstTokenMs: 2,
      silenceMs: 3,
      settings: { silence: "providers.acme.timeouts.silence" },
    });
  });
});
