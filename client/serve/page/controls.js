// The state, figures, queue and questions of one session.

function showStatus({ status, step, maxSteps, costUsd, model, queue, context }) {
  $("state").textContent = status;
  $("state").className = `badge ${status}`;
  const cost = costUsd === null ? "" : ` · ${dollars(costUsd)}`;
  $("figures").textContent = `step ${step}${maxSteps ? `/${maxSteps}` : ""}${cost} · ${model ?? ""}`;
  showContext(context.used, context.limit);
  $("queued").hidden = queue.length === 0;
  $("queued").textContent = `${queue.length} queued`;
  $("queue").hidden = queue.length === 0;
  $("queue").replaceChildren(...queue.map(queued));
  const over = hasEnded(status);
  $("interrupt").hidden = over;
  $("cancel").hidden = over;
  $("message").placeholder = over ? "Message: continues the session" : "Message: read at the next step";
}

function queued({ id, text }) {
  const item = make("li");
  const takeBack = (button) =>
    perform(button, () => request("DELETE", at(open.id, `/messages/${encodeURIComponent(id)}`)));
  item.append(make("span", "", `✉ ${text}`), makeButton("", "Take back", takeBack));
  return item;
}

function showContext(used, limit) {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  $("used").style.width = `${share * 100}%`;
  $("used").className = share > 0.8 ? "high" : "";
  $("context").title = `context window: ${count(used)} of ${count(limit)} tokens`;
  $("context").setAttribute("aria-label", $("context").title);
}

/** Not redrawn if nothing changed: a person may be writing an answer. */
function showQuestions(questions) {
  const key = JSON.stringify(questions.map(({ session, id }) => [session, id]));
  if ($("questions").dataset.key === key && questions.length > 0) return;
  $("questions").dataset.key = key;
  $("questions").replaceChildren(...questions.map(questionPart));
}

function questionPart({ session, id, kind, text, options, default: fallback, expiresAt }) {
  // The other kinds are allowed or denied. `WORDED` and `QUESTION_TITLES` are the server's own.
  const wantsWords = WORDED.includes(kind);
  const part = make("div", "question");
  const from = session === open.id ? "" : ` · ${session}`;
  part.append(
    make("div", "faint", `${QUESTION_TITLES[kind] ?? kind} ${id}${from}`),
    make("div", "words", text),
  );
  if (fallback)
    part.append(
      make(
        "p",
        "note",
        `default: ${fallback}${expiresAt ? `, used if there is no answer by ${expiresAt}` : ""}`,
      ),
    );
  const send = (button, answer) =>
    perform(button, async () => {
      const answered = await request("POST", at(session, "/answers"), { question: id, ...answer });
      if (answered.warning) showProblem({ message: answered.warning });
    });
  const choices = make("div", "choices");
  const choice = (label, answer, look = "") =>
    choices.append(makeButton(look, label, (button) => send(button, answer)));
  (options ?? []).forEach(({ label, description }, place) => {
    // The first option of a limit's question is to continue, the other is to stop.
    const look = kind === "budget" && place > 0 ? "danger" : "main";
    choice(description ? `${label} – ${description}` : label, { option: place + 1 }, look);
  });
  if (wantsWords && kind !== "budget") choice("Decline", { action: "decline" });
  else if (!wantsWords) {
    choice("Allow", { action: "allow" }, "main");
    if (kind === "approval") choice("Allow always", { action: "allow-always" });
    choice("Deny", { action: "deny" }, "danger");
  }
  part.append(choices);
  // A question with options accepts only those, except for a limit's question, which also accepts an amount.
  if (options?.length > 0 && kind !== "budget") return part;
  const form = make("form");
  const words = make("input");
  const button = make("button", "", wantsWords ? "Answer" : "Deny with a reason");
  words.placeholder = hintFor(kind, options ?? []);
  words.setAttribute("aria-label", words.placeholder);
  form.append(words, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const own = words.value.trim();
    if (own) void send(button, wantsWords ? { text: own } : { action: "deny", text: own });
  });
  part.append(form);
  return part;
}

function hintFor(kind, options) {
  if (kind === "budget")
    return options.some(({ label }) => /steps?$/.test(label)) ? "Or: 20 steps" : "Or: $2.50";
  return WORDED.includes(kind) ? "In your own words" : "Why not, or what instead";
}
