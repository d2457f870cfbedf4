// The page: the list of sessions, and one that is followed.
const LIST_MS = 3000;
const STATUS_MS = 4000;
const RETRY_MS = 1500;
/** A GET that takes longer counts as lost, such as when a laptop slept; it is tried again. */
const ANSWER_MS = 60_000;
/** In a long session, only the newest events are shown. */
const MAX_EVENTS = 4000;

// The token is never part of a request's address, because the fragment stays in the browser.
const fragment = location.hash.slice(1);
if (fragment) {
  sessionStorage.setItem("token", fragment);
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem("token") ?? "";
const log = new Log($("log"));
let open;

async function request(method, path, body) {
  const headers = { authorization: `Bearer ${token}` };
  const sent = { method, headers, ...(method === "GET" ? { signal: AbortSignal.timeout(ANSWER_MS) } : {}) };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    sent.body = JSON.stringify(body);
  }
  const response = await fetch(`/v1/${path}`, sent);
  // The server's own words are for programs that send a header.
  if (response.status === 401)
    throw new Error("This page has no valid token: open the address that longhaul serve printed last.");
  const json = await response.json();
  if (!response.ok) throw new Error([json.error.message, json.error.fix].filter(Boolean).join(" "));
  return json;
}

const at = (id, rest = "") => `sessions/${encodeURIComponent(id)}${rest}`;
const isUnanswered = (error) => error instanceof TypeError || error.name === "TimeoutError";
const hasEnded = (status) => status !== "active" && status !== "waiting";

function showProblem(error) {
  for (const place of [$("problem"), $("refused")]) {
    place.textContent = plain(error?.message ?? "");
    place.hidden = error === undefined;
  }
}

/** Performs a button's action; the button cannot be pressed again meanwhile. */
async function perform(button, action) {
  button.disabled = true;
  showProblem();
  try {
    await action();
    await refresh();
    return true;
  } catch (error) {
    showProblem(error);
    return false;
  } finally {
    button.disabled = false;
  }
}

async function listSessions() {
  try {
    const [all, waiting] = await Promise.all([
      request("GET", "sessions?limit=100"),
      request("GET", "sessions?status=waiting&limit=100"),
    ]);
    const rest = all.filter(({ id }) => !waiting.some((other) => other.id === id));
    showList([
      ["Waits for you", waiting],
      ["Running", rest.filter(({ status }) => !hasEnded(status))],
      ["Ended", rest.filter(({ status }) => hasEnded(status))],
    ]);
    if (!open) $("connection").textContent = "";
  } catch (error) {
    $("connection").textContent = isUnanswered(error) ? "not connected" : plain(error.message);
  }
}

function showList(groups) {
  const parts = groups.flatMap(([title, sessions]) =>
    sessions.length === 0 ? [] : [make("h3", "", title), ...sessions.map(listed)],
  );
  renew("list", "id", parts.length === 0 ? [make("p", "note", "There are no sessions yet.")] : parts);
}

function listed({ id, status, task }) {
  const button = listButton(["id", id], { name: id, status, about: task }, () => openSession(id));
  button.setAttribute("aria-current", String(id === open?.id));
  return button;
}

function openSession(id) {
  closeSession();
  open = { id, seq: 0, left: new AbortController() };
  document.body.classList.add("open");
  $("session").hidden = false;
  $("empty").hidden = true;
  $("name").textContent = id;
  for (const name of ["state", "figures"]) $(name).textContent = "";
  log.clear();
  void showTab("log");
  showProblem();
  showQuestions([]);
  showContext(0, 0);
  void refresh().then((status) => followSession(open, Math.max(0, (status?.lastSeq ?? 0) - MAX_EVENTS)));
  void listSessions();
}

function closeSession() {
  open?.left.abort();
  open = undefined;
  document.body.classList.remove("open");
  $("session").hidden = true;
  $("start").hidden = true;
  $("empty").hidden = false;
  $("connection").textContent = "";
}

/** Reads the current status, queue and questions, and shows them. */
async function refresh() {
  const of = open;
  if (!of) return undefined;
  try {
    const [status, questions] = await Promise.all([
      request("GET", at(of.id)),
      request("GET", at(of.id, "/questions")),
    ]);
    if (of !== open) return undefined;
    log.task = status.task;
    showStatus(status);
    showQuestions(hasEnded(status.status) ? [] : questions);
    return status;
  } catch (error) {
    showProblem(isUnanswered(error) ? new Error("The server does not answer.") : error);
    return undefined;
  }
}

/** Shows events as they arrive, each once. After a lost connection, continues behind the last one. */
async function followSession(of, from) {
  if (!of) return;
  of.seq = Math.max(of.seq, from);
  of.isFollowed = true;
  if (from > 0) log.note("Earlier events are left out here; longhaul watch shows all of them.");
  while (of === open) {
    try {
      const response = await fetch(`/v1/${at(of.id, "/events")}`, {
        headers: { authorization: `Bearer ${token}`, "last-event-id": String(of.seq) },
        signal: of.left.signal,
      });
      if (!response.ok) throw new Error((await response.json()).error.message);
      $("connection").textContent = "live";
      if (await readStream(of, response.body)) {
        $("connection").textContent = "";
        of.isFollowed = false;
        await refresh();
        return;
      }
    } catch {
      if (of !== open) return;
    }
    $("connection").textContent = "connecting …";
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

/** Resolves with true if the run has ended. */
async function readStream(of, body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data === undefined) continue;
      if (block.startsWith("event: end")) return true;
      if (of !== open) return false;
      const event = JSON.parse(data);
      if (event.seq <= of.seq) log.note(RESTORED, "warn");
      of.seq = event.seq;
      take(event);
    }
  }
}

let soon;
function take(event) {
  log.show(event);
  const { type, data } = event;
  if (type === "llm:response") showContext(data.contextUsed, data.contextLimit);
  if (!/^(question|message|session|step):/.test(type)) return;
  // Many events at once, such as at the beginning, cause one request.
  clearTimeout(soon);
  soon = setTimeout(refresh, 250);
}

async function showTab(name) {
  for (const tab of ["log", "diff"]) {
    $(tab).hidden = tab !== name;
    $(`show-${tab}`).setAttribute("aria-selected", String(tab === name));
  }
  if (name !== "diff") return;
  $("diff").replaceChildren(make("p", "note", "…"));
  try {
    const { changed, patch } = await request("GET", at(open.id, "/diff"));
    $("diff").replaceChildren(
      make(
        "p",
        "note",
        changed === 0 ? "Nothing has changed." : `${changed} file${changed === 1 ? "" : "s"}, as last saved`,
      ),
      ...patch
        .split(/^(?=diff --git )/m)
        .filter(Boolean)
        .map(patchPart),
    );
  } catch (error) {
    $("diff").replaceChildren(make("p", "note", error.message));
  }
}

function showAttached() {
  const { length } = $("files").files;
  $("attached").textContent = length === 0 ? "Attach" : `${length} attached`;
}

/** A file with its data in base64, as the API expects it. */
function readFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () =>
      resolve({ name: file.name, data: reader.result.slice(reader.result.indexOf(",") + 1) });
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

async function say() {
  const text = $("message").value.trim();
  if (!text) return;
  const of = open;
  const isSent = await perform($("send"), async () => {
    const files = await Promise.all([...$("files").files].map(readFile));
    await request("POST", at(of.id, "/messages"), files.length === 0 ? { text } : { text, files });
  });
  if (!isSent) return;
  $("message").value = "";
  $("files").value = "";
  showAttached();
  // A session that had ended continues.
  if (of === open && !of.isFollowed) void followSession(of, 0);
}

$("files").addEventListener("change", showAttached);
$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  void say();
});
$("message").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  void say();
});
$("interrupt").addEventListener("click", ({ currentTarget }) => {
  void perform(currentTarget, async () => {
    const text = $("message").value.trim();
    await request("POST", at(open.id, "/interrupt"), text ? { text } : {});
    $("message").value = "";
  });
});
$("cancel").addEventListener("click", ({ currentTarget }) => {
  if (!confirm(`End the run of ${open.id}? Its files are kept.`)) return;
  void perform(currentTarget, () => request("POST", at(open.id, "/cancel"), {}));
});
$("back").addEventListener("click", closeSession);
for (const name of ["log", "diff"]) $(`show-${name}`).addEventListener("click", () => void showTab(name));

/** Repeats an action; each time after the previous one has ended, so that requests to a slow server do not pile up. */
async function every(ms, action) {
  for (;;) {
    await new Promise((done) => setTimeout(done, ms));
    if (!document.hidden) await action().catch(showProblem);
  }
}

void listSessions();
void listMany();
void every(LIST_MS, listSessions);
void every(MANY_MS, listMany);
void every(STATUS_MS, refresh);
