// Batches and schedules, below the sessions: their state, their buttons, and the sessions that they started.
const MANY_MS = 15000;
/** The unfolded entry: `batch NAME` or `schedule NAME`. */
let unfolded;
/** The error of the unfolded entry's last button. */
let refusal;

async function listMany() {
  // If Temporal does not answer, the sessions above are still shown.
  const [batches, schedules, items] = await Promise.all([
    request("GET", "batches").catch(() => []),
    request("GET", "schedules").catch(() => []),
    unfolded?.startsWith("batch ")
      ? request("GET", `batches/${encodeURIComponent(unfolded.slice("batch ".length))}`).then(
          (batch) => batch.items,
          () => [],
        )
      : [],
  ]);
  const parts = [
    ...(batches.length === 0
      ? []
      : [make("h3", "", "Batches"), ...batches.flatMap((batch) => batchParts(batch, items))]),
    ...(schedules.length === 0 ? [] : [make("h3", "", "Schedules"), ...schedules.flatMap(scheduleParts)]),
  ];
  renew("many", "many", parts);
}

function batchParts({ name, status, total, completed, failed, waits, costUsd }, items) {
  const cost = costUsd > 0 ? ` · ${dollars(costUsd)}` : "";
  const about = `${completed} of ${total} completed${failed ? `, ${failed} failed` : ""}${waits ? `, ${waits} wait` : ""}${cost}`;
  const path = `batches/${encodeURIComponent(name)}`;
  const question = `Cancel the batch ${name}, with its running sessions?`;
  return folding(`batch ${name}`, { name, status, about }, () => [
    ...items.map(itemPart),
    ...(status === "running" ? [actions(requestButton("Cancel batch", `${path}/cancel`, question))] : []),
  ]);
}

function itemPart({ id, status, session, failure, task }) {
  if (session === null) return make("p", "note within", `${id}: ${status}`);
  return sessionButton(session, { name: id, status, about: failure ?? task });
}

function scheduleParts({ name, state, cron, timeZone, next, last, running, task }) {
  const at = next === null || state !== "active" ? "" : ` · next ${new Date(next).toLocaleString()}`;
  const about = `${cron ?? ""} ${timeZone ?? ""}${at}`.trim();
  const path = `schedules/${encodeURIComponent(name)}`;
  const session = running[0] ?? last;
  const isRunning = running.length > 0;
  return folding(`schedule ${name}`, { name, status: isRunning ? "running" : state, about }, () => [
    make("p", "note within", task),
    ...(session === null
      ? []
      : [sessionButton(session, { name: session, status: isRunning ? "running" : "last", about: "" })]),
    actions(
      requestButton("Run now", `${path}/run`),
      state === "paused"
        ? requestButton("Resume", `${path}/resume`)
        : requestButton("Pause", `${path}/pause`),
    ),
  ]);
}

/** A line that unfolds and folds its content. */
function folding(key, line, content) {
  const isOpen = key === unfolded;
  const button = listButton(["many", key], line, () => {
    unfolded = isOpen ? undefined : key;
    refusal = undefined;
    void listMany();
  });
  button.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) return [button];
  return [button, ...content(), ...(refusal === undefined ? [] : [make("p", "note within bad", refusal)])];
}

function sessionButton(session, line) {
  const button = listButton(["many", `session ${session}`], line, () => openSession(session));
  button.classList.add("within");
  return button;
}

function actions(...buttons) {
  const row = make("div", "within actions");
  row.append(...buttons);
  return row;
}

/** A button that sends a request. @param question asked first, for confirmation */
function requestButton(label, path, question) {
  const button = makeButton(question ? "danger" : "", label, async () => {
    if (question && !confirm(question)) return;
    button.disabled = true;
    refusal = await request("POST", path, {}).then(
      () => undefined,
      (error) => error.message,
    );
    await Promise.all([listMany(), listSessions()]);
  });
  button.dataset.many = path;
  return button;
}
