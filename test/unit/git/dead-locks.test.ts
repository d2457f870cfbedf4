/** Locks in our own repositories: the dead's are removed, those of whoever may live stay. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { atWork, isInUse } from "../../../activities/git/own-repositories.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { updateMirror } from "../../../activities/git/mirror.ts";
import { openRelay, receive } from "../../../activities/git/relay.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { createFakeSandbox } from "../../support/fake-sandbox.ts";
import { gitIn, makeRemote } from "../../support/remotes.ts";

const LOCKS = [
  "index.lock",
  "HEAD.lock",
  "config.lock",
  "packed-refs.lock",
  "shallow.lock",
  "refs/heads/main.lock",
  "refs/longhaul/commits/deep/er.lock",
  "logs/refs/heads/main.lock",
  "objects/info/commit-graph.lock",
  "objects/pack/multi-pack-index.lock",
];

it("does not keep a session's commits out of its relay where a killed git left a lock", async () => {
  const remote = makeRemote();
  const access = createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder() });
  const mirror = await updateMirror(access, remote.url);
  const relay = await openRelay(access, "a", mirror);
  const head = remote.at("main") ?? "";
  const commits = join(relay.folder, "refs", "longhaul", "commits");
  mkdirSync(commits, { recursive: true });
  writeFileSync(join(commits, `${head}.lock`), "");
  // It has the commits already: the sandbox is not asked.
  const sandbox = await createFakeSandbox();
  onTestFinished(() => sandbox.dispose());
  const want = { head, ref: "HEAD", base: undefined, maxBytes: 1, signal: new AbortController().signal };
  expect(await receive(relay, sandbox, want)).toEqual({ commit: head });
  expect(gitIn(relay.folder, "rev-parse", `refs/longhaul/commits/${head}`)).toBe(head);
});

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
  gitIn(folder, "init", "-q", "--bare");
  for (const lock of LOCKS) {
    mkdirSync(join(folder, dirname(lock)), { recursive: true });
    writeFileSync(join(folder, lock), "");
  }
});
const left = () => LOCKS.filter((lock) => existsSync(join(folder, lock)));
const records = () => readdirSync(folder).filter((name) => name.startsWith("longhaul-at-work-"));
const PLACE = `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
const bornOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19];

function record(worker: object): string {
  const file = join(folder, "longhaul-at-work-other");
  writeFileSync(file, JSON.stringify(worker));
  return file;
}

function other(): { child: ChildProcess; pid: number } {
  const child = spawn("sleep", ["600"]);
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, pid: child.pid ?? 0 };
}

it("of a git of this very process that was killed are removed, however young", async () => {
  expect(await atWork(folder, async () => left())).toEqual([]);
  expect(records()).toEqual([]);
});

it("stay while another process says that it works here, and go when it has died without a word", async () => {
  const { child, pid } = other();
  record({ place: PLACE, pid, born: bornOf(pid) });
  expect(await atWork(folder, async () => left())).toEqual(LOCKS);
  expect(await isInUse(folder)).toBe(true);
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  expect(await atWork(folder, async () => left())).toEqual([]);
  expect(records()).toEqual([]);
});

it("of a process whose number another one has now are a dead one's", async () => {
  record({ place: PLACE, pid: other().pid, born: "1" });
  expect(await atWork(folder, async () => left())).toEqual([]);
});

it("of another machine or container stay for as long as its work can take", async () => {
  const file = record({ place: "elsewhere pid:[1]", pid: process.pid, born: bornOf(process.pid) });
  expect(await atWork(folder, async () => left())).toEqual(LOCKS);
  const longAgo = new Date(Date.now() - 4 * 3_600_000);
  utimesSync(file, longAgo, longAgo);
  expect(await atWork(folder, async () => left())).toEqual([]);
  expect(records()).toEqual([]);
});

it("are announced before the work begins, and the record goes with a failure too", async () => {
  const seen: string[] = [];
  const failed = atWork(folder, async () => {
    for (const name of records()) seen.push(readFileSync(join(folder, name), "utf8"));
    throw new Error("no");
  });
  await expect(failed).rejects.toThrow("no");
  expect(seen.map((text) => JSON.parse(text))).toEqual([
    { place: PLACE, pid: process.pid, born: bornOf(process.pid) },
  ]);
  expect(records()).toEqual([]);
});

it("of one that died while it wrote its record are removed: it had not begun", async () => {
  writeFileSync(join(folder, "longhaul-at-work-other"), '{"place"');
  expect(await atWork(folder, async () => left())).toEqual([]);
});
