// The rows: what was read at one time, which events came of it, and what was written then.

import { count, element, plural, seconds, visibleBytes, visibleLine } from "./text.js";

const NAMES = {
  TextDelta: "text",
  ReasoningDelta: "reasoning",
  RefusalDelta: "refusal",
  ToolCallStarted: "call",
  ToolCallArguments: "arguments",
  ToolCallFinished: "call ended",
  ToolCallDoomed: "call doomed",
  ResponseStarted: "response",
  ChoiceStarted: "choice",
  UsageReported: "usage",
  ResponseFinished: "stop",
  StreamEnded: "end",
  ProviderFailed: "error",
  MediaGenerated: "media",
};
/** Events of one row that are drawn at once. */
const EVENTS = 40;

export class Steps {
  #grid;
  #select;
  #made = [];
  #chosen = null;
  #timed = true;
  #encodes = true;
  #follows = false;

  /** `select` is called with the number of a row. */
  constructor(grid, select) {
    this.#grid = grid;
    this.#select = select;
    for (const kind of ["wheel", "pointerdown", "keydown"])
      grid.addEventListener(kind, () => { this.#follows = false; }, { passive: true });
    grid.addEventListener("click", (event) => {
      const row = event.target.closest(".step");
      if (row) select(Number(row.dataset.number));
    });
  }

  /** Begin anew. `isLive`: the last row stays in sight as others come, until the reader looks at another. */
  clear(timed, encodes, isLive) {
    this.#follows = isLive;
    for (const row of this.#made) row.remove();
    this.#made = [];
    this.#chosen = null;
    this.#timed = timed;
    this.#encodes = encodes;
    this.#grid.classList.toggle("bare", !encodes);
    this.#grid.removeAttribute("aria-activedescendant");
  }

  /** Draw a row anew, or for the first time. */
  show(row) {
    const made = element("div", `step ${row.kind}`, this.#when(row), this.#raw(row), this.#events(row));
    if (this.#encodes) made.append(this.#encoded(row));
    made.id = `step-${row.number}`;
    made.dataset.number = row.number;
    made.setAttribute("role", "row");
    made.setAttribute("aria-selected", "false");
    const before = this.#made[row.number];
    this.#made[row.number] = made;
    if (before) before.replaceWith(made);
    else this.#grid.append(made);
    if (before && before === this.#chosen) this.choose(row.number, false);
    if (this.#follows) this.#grid.scrollTop = this.#grid.scrollHeight;
  }

  choose(number, scroll = true) {
    this.#follows = false;
    this.#chosen?.setAttribute("aria-selected", "false");
    this.#chosen = this.#made[number] ?? null;
    if (!this.#chosen) return;
    this.#chosen.setAttribute("aria-selected", "true");
    this.#grid.setAttribute("aria-activedescendant", this.#chosen.id);
    if (scroll) this.#chosen.scrollIntoView({ block: "nearest" });
  }

  #when(row) {
    const cell = element("div", "when");
    cell.setAttribute("role", "gridcell");
    if (!this.#timed) {
      cell.append(element("span", "", row.kind === "end" ? "end" : `byte ${count(row.x)}`));
      return cell;
    }
    cell.append(element("span", "", seconds(row.x)));
    if (row.gap > 0.0005) cell.append(element("span", "gap", `+${seconds(row.gap)}`));
    return cell;
  }

  #raw(row) {
    const cell = element("div", "bytes");
    cell.setAttribute("role", "gridcell");
    if (row.kind === "attempt") {
      cell.append(element("span", "note", `asks ${visibleLine(row.upstream)}, ${visibleLine(row.dialect)}`));
    } else if (row.kind === "end") {
      const why = row.error ? `: ${visibleLine(row.error)}` : "";
      cell.append(element("span", `note ${row.status === "done" ? "good" : "bad"}`, `${ended(row.status)}${why}`));
    } else if (row.kind === "read") {
      bytes(cell, row, this.#timed);
    }
    return cell;
  }

  #encoded(row) {
    const cell = element("div", "bytes");
    cell.setAttribute("role", "gridcell");
    for (const write of row.encoded) bytes(cell, write);
    return cell;
  }

  #events(row) {
    const cell = element("div", "events");
    cell.setAttribute("role", "gridcell");
    const events = row.events ?? [];
    for (const event of events.slice(0, EVENTS)) cell.append(chip(event));
    if (events.length > EVENTS) {
      const more = element("button", "more", `${count(events.length - EVENTS)} more events`);
      more.addEventListener("click", () => more.replaceWith(...events.slice(EVENTS).map(chip)));
      cell.append(more);
    }
    for (const [what, counted] of [["repair", row.repairs ?? []], ["loss", row.losses ?? []]]) {
      for (const each of counted) {
        const times = each.times > 1 ? ` ×${each.times}` : "";
        const made = element("div", `event ${what}`, element("b", "", what), ` ${each.kind}${times}`);
        made.title = `${each.meaning} (byte ${count(each.at)})`;
        cell.append(made);
      }
    }
    return cell;
  }
}

const ended = (status) =>
  ({
    done: "clean end",
    cut: "cut: it ended before its completion point",
    failed: "failed",
    provider_error: "the provider reported an error",
    not_this_dialect: "not this dialect",
    not_kept: "what follows was not kept",
  })[status] ?? status;

function bytes(cell, { type, alive, offset, size, text, cut }, isPlaced = true) {
  const facts = [plural(size, "byte")];
  if (isPlaced) facts.unshift(`byte ${count(offset)}`);
  if (alive || type === "keep-alive") facts.push("keep-alive");
  cell.append(element("span", "where", facts.join(", ")), element("pre", "", visibleBytes(text)));
  if (cut) cell.append(element("span", "note", `and ${plural(cut, "more byte")}`));
}

function chip(event) {
  const made = element("div", `event ${NAMES[event.type] ? event.type : "other"}`);
  made.append(element("b", "", NAMES[event.type] ?? visibleLine(event.type)), " ", said(event));
  made.title = `${event.type}, byte ${count(event.at)}`;
  return made;
}

/** What an event says, on one line. */
function said(event) {
  switch (event.type) {
    case "TextDelta":
    case "ReasoningDelta":
    case "RefusalDelta":
      return element("q", "", visibleLine(event.text));
    case "ToolCallArguments":
      return element("q", "", visibleLine(event.fragment));
    case "ToolCallFinished":
      return `${event.call} ${event.verdict?.kind ?? "unchecked"}`;
    case "StreamEnded":
      return event.clean ? "clean" : "not clean";
  }
  const members = Object.entries(event).filter(([name]) => !["type", "at", "raw"].includes(name));
  return members.map(([name, value]) => `${name}=${shown(value)}`).join("  ");
}

const shown = (value) =>
  typeof value === "object" ? visibleLine(JSON.stringify(value)) : visibleLine(String(value));
