// What one session is and waits for: state, figures, queue, questions.

function showStatus({ status, step, maxSteps, costUsd, model, queue, context }) {
  $("state").textContent = status;
  $("state").className = `badge ${status}`;
  const cost = costUsd === null ? "" : ` · $${costUsd.toFixed(costUsd < 1 ? 4 : 2)}`;
  $("figures").textContent = `step ${step}${maxSteps ? `/${maxSteps}` : ""}${cost} · ${model ?? ""}`;
  showContext(context.used, context.limit);
  $("queued").hidden = queue.length === 0;
  $("queued").textContent = `${queue.length} queued`;
  $("queue").hidden = queue.length === 0;
  $("queue").replaceChildren(...queue.map(queued));
  const over = hasEnded(status);
  $("interrupt").hidden = over;
  $("cancel").hidden = over;
  $("message").placeholder = over ? "Say something to go on with it" : "Message: read at the next step";
}

function queued({ id, text }) {
  const item = make("li");
  const button = make("button", "", "Take back");
  button.type = "button";
  button.addEventListener("click", () =>
    act(button, () => request("DELETE", at(open.id, `/messages/${encodeURIComponent(id)}`))),
  );
  item.append(make("span", "", `✉ ${text}`), button);
  return item;
}

function showContext(used, limit) {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  $("used").style.width = `${share * 100}%`;
  $("used").className = share > 0.8 ? "high" : "";
  $("context").title = `context window: ${count(used)} of ${count(limit)} tokens`;
  $("context").setAttribute("aria-label", $("context").title);
}

/** Left as they are where nothing changed: a person may be writing an answer. */
function showQuestions(questions) {
  const key = JSON.stringify(questions.map(({ session, id }) => [session, id]));
  if ($("questions").dataset.key === key && questions.length > 0) return;
  $("questions").dataset.key = key;
  $("questions").replaceChildren(...questions.map(questionPart));
}

/** Kinds that words answer; the others want leave. */
const KINDS = { ask: "Question", mcp: "Question of a server", budget: "Limit" };

function questionPart({ session, id, kind, text, options, default: fallback, expiresAt }) {
  const wantsWords = kind in KINDS;
  const part = make("div", "question");
  const from = session === open.id ? "" : ` · ${session}`;
  part.append(make("div", "faint", `${KINDS[kind] ?? kind} ${id}${from}`), make("div", "words", text));
  if (fallback)
    part.append(make("p", "note", `default: ${fallback}${expiresAt ? `, taken at ${expiresAt}` : ""}`));
  const send = (button, answer) =>
    act(button, () => request("POST", at(session, "/answers"), { question: id, ...answer }));
  const choices = make("div", "choices");
  const choice = (label, answer, look = "") => {
    const button = make("button", look, label);
    button.type = "button";
    button.addEventListener("click", () => send(button, answer));
    choices.append(button);
    return button;
  };
  (options ?? []).forEach(({ label, description }, place) => {
    choice(description ? `${label} – ${description}` : label, { option: place + 1 }, "main");
  });
  // Of a limit's question to stop is one of the options.
  if (wantsWords && kind !== "budget") choice("Decline", { action: "decline" });
  else if (!wantsWords) {
    choice("Allow", { action: "allow" }, "main");
    if (kind === "approval") choice("Allow always", { action: "allow-always" });
    choice("Deny", { action: "deny" }, "danger");
  }
  part.append(choices);
  const form = make("form");
  const words = make("input");
  const button = make("button", "", wantsWords ? "Answer" : "Deny with a reason");
  words.setAttribute("aria-label", "Answer in your own words");
  words.placeholder = wantsWords ? "In your own words" : "Why not, or what instead";
  form.append(words, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const own = words.value.trim();
    if (own) void send(button, wantsWords ? { text: own } : { action: "deny", text: own });
  });
  part.append(form);
  return part;
}
