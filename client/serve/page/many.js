// Batches and schedules, below the sessions: how they stand, and the sessions that they started.
const MANY_MS = 15000;
/** The batch whose items are shown. */
let openBatch;

async function listMany() {
  // A server of Temporal that is away takes nothing from the sessions above.
  const [batches, schedules, items] = await Promise.all([
    request("GET", "batches").catch(() => []),
    request("GET", "schedules").catch(() => []),
    openBatch === undefined
      ? []
      : request("GET", `batches/${encodeURIComponent(openBatch)}`).then(
          (batch) => batch.items,
          () => [],
        ),
  ]);
  const focused = document.activeElement?.dataset?.many;
  const parts = [
    ...(batches.length === 0
      ? []
      : [make("h3", "", "Batches"), ...batches.flatMap((each) => batchParts(each, items))]),
    ...(schedules.length === 0 ? [] : [make("h3", "", "Schedules"), ...schedules.flatMap(scheduleParts)]),
  ];
  $("many").replaceChildren(...parts);
  if (focused)
    $("many")
      .querySelector(`[data-many="${CSS.escape(focused)}"]`)
      ?.focus();
}

function batchParts({ name, status, total, completed, failed, waits, costUsd }, items) {
  const isOpen = name === openBatch;
  const cost = costUsd > 0 ? ` · $${costUsd.toFixed(costUsd < 1 ? 4 : 2)}` : "";
  const about = `${completed} of ${total} completed${failed ? `, ${failed} failed` : ""}${waits ? `, ${waits} wait` : ""}${cost}`;
  const button = manyButton(`batch ${name}`, name, status, about);
  button.setAttribute("aria-expanded", String(isOpen));
  button.addEventListener("click", () => {
    openBatch = isOpen ? undefined : name;
    void listMany();
  });
  if (!isOpen) return [button];
  return [button, ...items.map((item) => itemPart(item))];
}

function itemPart({ id, status, session, failure, task }) {
  if (session === null) return make("p", "note", `${id}: ${status}`);
  const button = manyButton(`item ${session}`, id, status, failure ?? task);
  button.classList.add("item");
  button.addEventListener("click", () => openSession(session));
  return button;
}

function scheduleParts({ name, state, cron, timeZone, next, last, running, task }) {
  const at = next === null || state !== "active" ? "" : ` · next ${new Date(next).toLocaleString()}`;
  const times = `${cron ?? ""} ${timeZone ?? ""}${at}`.trim();
  const session = running[0] ?? last;
  if (session === null) {
    const part = make("p", "note", `${name} (${state}) · ${times}`);
    part.title = task;
    return [part];
  }
  const button = manyButton(`schedule ${name}`, name, running.length > 0 ? "active" : state, times);
  button.title = task;
  button.addEventListener("click", () => openSession(session));
  return [button];
}

function manyButton(key, name, status, about) {
  const button = make("button");
  button.type = "button";
  button.dataset.many = key;
  const row = make("span", "row");
  row.append(make("span", "", name), make("span", `badge ${status}`, status));
  button.append(row, make("span", "about", about));
  return button;
}
