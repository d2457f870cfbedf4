// What the page shows of events. Words of models and people are only ever text, never markup.
"use strict";

const $ = (id) => document.getElementById(id);

/** Characters that are invisible or reorder others, as codes. `HIDDEN` is the server's own pattern. */
function plain(text) {
  return String(text).replace(HIDDEN, (char, hidden) => {
    if (hidden === undefined) return char;
    const code = hidden.codePointAt(0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = plain(text);
  return element;
}

function makeButton(className, text, onClick) {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", () => onClick(button));
  return button;
}

/** A list entry: name and state, with a description below. @param data the data attribute and value that identify it */
function listButton([data, key], { name, status, about }, onClick) {
  const button = makeButton("", undefined, onClick);
  button.dataset[data] = key;
  const row = make("span", "row");
  row.append(make("span", "", name), make("span", `badge ${status}`, status));
  button.append(row, make("span", "about", about));
  return button;
}

const dollars = (usd) => `$${usd.toFixed(usd < 1 ? 4 : 2)}`;

/**
 * Shows `parts` in the element `id`. If nothing changed, the elements stay: a button that is replaced while it is
 * pressed is not clicked. @param name of the data attribute that identifies the part with the focus
 */
function renew(id, name, parts) {
  const shown = [...$(id).children];
  if (parts.length === shown.length && parts.every((part, at) => part.isEqualNode(shown[at]))) return;
  const focused = document.activeElement?.dataset?.[name];
  $(id).replaceChildren(...parts);
  if (focused)
    $(id)
      .querySelector(`[data-${name}="${CSS.escape(focused)}"]`)
      ?.focus();
}

/** A patch or a replaced text, line by line. */
function patchPart(patch) {
  const part = make("pre");
  for (const line of patch.split("\n")) {
    const kind = /^(\+\+\+|---|diff |index )/.test(line)
      ? ""
      : { "+": "add", "-": "del", "@": "at" }[line[0]];
    part.append(make("span", kind ?? "", `${line}\n`));
  }
  return part;
}

const marked = (text, mark) =>
  text
    .split("\n")
    .map((line) => mark + line)
    .join("\n");

/** A call's input; an edit is shown as removed and added lines. */
function inputParts({ input, inputCut }) {
  if (inputCut !== undefined) return [make("pre", "", `${inputCut} …`)];
  if (input === undefined || input === null) return [];
  if (typeof input !== "object") return [make("pre", "", String(input))];
  const { old_string: before, new_string: after, patch, ...others } = input;
  const parts = [];
  if (typeof patch === "string") parts.push(patchPart(patch));
  if (typeof before === "string" && typeof after === "string")
    parts.push(patchPart(`${marked(before, "-")}\n${marked(after, "+")}`));
  const lines = Object.entries(others).map(
    ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, undefined, 2)}`,
  );
  if (lines.length > 0) parts.unshift(make("pre", "", lines.join("\n")));
  return parts;
}

/** What the server says of an event, and lines below it. */
const worded = ({ mark, text, facts, detail }) =>
  [[mark, text, facts && `· ${facts}`].filter(Boolean).join(" "), detail].filter(Boolean).join("\n");

/** The log of one session, from its events in order. */
class Log {
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.place.replaceChildren();
    this.calls = new Map();
    this.task = undefined;
    this.endLive();
  }

  /** Streamed parts are shown until the step's whole response arrives. */
  endLive() {
    for (const part of [this.text, this.thought, this.draft]) part?.remove();
    this.text = this.thought = this.draft = undefined;
  }

  add(...parts) {
    const stays = this.place.scrollHeight - this.place.scrollTop - this.place.clientHeight < 80;
    this.place.append(...parts);
    if (stays) this.place.scrollTop = this.place.scrollHeight;
  }

  note(text, kind = "") {
    this.add(make("p", `note ${kind}`, text));
  }

  /** `sentences`: the event in words, from the server. Here are only the events that are drawn in another way. */
  show({ type, data, step, attempt, sentences = [] }) {
    switch (type) {
      case "session:started":
        if (data.continued || data.resetTo !== undefined) break;
        return this.add(make("div", "person", this.task ?? data.task));
      case "step:started":
        this.endLive();
        return;
      case "llm:chunk":
        return this.chunk(data, `${step}.${attempt}`);
      case "llm:response":
        this.response(data);
        break;
      case "llm:tool-call":
        return this.call(step, data);
      case "llm:tool-result":
        return this.result(step, data, sentences);
      case "message:dequeued":
        return this.add(make("div", "person", data.text));
      case "session:ended": {
        this.endLive();
        const lines = [...sentences.map(worded), data.text === this.said ? "" : data.text];
        const look = `outcome${data.status === "completed" ? "" : " bad"}`;
        return this.add(make("div", look, lines.filter(Boolean).join("\n")));
      }
      case "llm:error":
        this.endLive();
        break;
      case "question:asked":
        // The agent's own question stands in its call.
        if (data.kind === "ask") return;
        break;
      // The part that grows shows that the model is at work; and what waits is shown as the queue.
      case "llm:thinking":
      case "message:queued":
        return;
    }
    // A sandbox is no news if it is as it was asked for.
    for (const sentence of sentences)
      if (type !== "sandbox:created" || sentence.tone !== "quiet") this.note(worded(sentence), sentence.tone);
  }

  response({ reasoning, content }) {
    this.endLive();
    if (reasoning) this.add(folded("thought", reasoning));
    this.said = content;
    if (content) this.add(make("div", "words", content));
  }

  chunk({ chunkType, text }, attempt) {
    // A new attempt streams its response from the beginning.
    if (attempt !== this.attempt) this.endLive();
    this.attempt = attempt;
    const parts = { text: ["text", "words live"], reasoning: ["thought", "note live"] }[chunkType];
    if (parts !== undefined) {
      const [name, look] = parts;
      if (this[name] === undefined) this.add((this[name] = make("div", look, "")));
      this[name].append(plain(text));
    } else if (chunkType === "tool-name" || this.draft === undefined) {
      this.draft?.remove();
      this.draft = make("div", "note live", `▸ ${text} `);
      this.add(this.draft);
    } else this.draft.append(plain(text));
    this.add();
  }

  call(step, data) {
    this.draft?.remove();
    this.draft = undefined;
    const part = make("details");
    const head = make("summary");
    const state = make("span", "run", "● ");
    head.append(
      state,
      make("b", "", data.name),
      " ",
      make("span", "about", data.about),
      make("span", "faint"),
    );
    part.append(head, ...inputParts(data));
    this.calls.set(`${step}.${data.callId}`, { part, state, facts: head.lastChild });
    this.add(part);
  }

  result(step, { callId, name, truncated, text, excerpt, handle }, [how]) {
    if (!this.calls.has(`${step}.${callId}`)) this.call(step, { callId, name, about: "" });
    const { part, state, facts } = this.calls.get(`${step}.${callId}`);
    state.className = how.tone === "good" ? "ok" : "bad";
    state.textContent = `${how.mark} `;
    facts.textContent = ` ${how.facts}`;
    part.append(make("pre", "", text ?? excerpt));
    if (truncated || handle)
      part.append(make("p", "note", `cut here${handle ? `; the whole output: ${handle}` : ""}`));
    this.add();
  }
}

function folded(title, text) {
  const part = make("details");
  part.append(make("summary", "faint", title), make("div", "note words", text));
  return part;
}

const count = (tokens) =>
  tokens >= 1000 ? `${(tokens / 1000).toFixed(tokens >= 100000 ? 0 : 1)}k` : String(tokens);
