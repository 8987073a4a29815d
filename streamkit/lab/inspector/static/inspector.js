// The page: the list of streams, and the one that is looked at. What it shows comes from /feed, for which it needs the token
// of its address; that is kept for this tab, and taken out of the address.

import { Steps } from "./steps.js";
import { count, element, plural, seconds, visible, visibleLine } from "./text.js";
import { View, isGood } from "./view.js";
import { Waterfall } from "./waterfall.js";

const AGAIN_MS = 2000;
const $ = (id) => document.getElementById(id);
const streams = new Map();
let selected = null;
let view = null;
let controller = new AbortController();
const steps = new Steps($("steps"), choose);
const waterfall = new Waterfall($("waterfall"), choose);
const token = takeToken();

function takeToken() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given || sessionStorage.getItem("token") || "";
}

// -- the feed ---------------------------------------------------------------------------------------------------------

async function follow() {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  let wait = 0;
  while (!signal.aborted) {
    try {
      // A stream that was chosen begins at once: a key that follows is for its rows, not for those of the stream before it.
      if (wait) await new Promise((resolve) => setTimeout(resolve, wait));
      wait = AGAIN_MS;
      if (signal.aborted) return;
      if (!streams.has(selected)) selected = null;
      if (selected !== null) begin(streams.get(selected));
      isFirst = true;
      await read(signal);
      state("the connection was closed; trying again", "bad");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) return refuse(error.message);
      state(error instanceof TypeError ? "no connection; trying again" : error.message, "bad");
    }
  }
}

class Refused extends Error {}

function refuse(why) {
  state("refused", "bad");
  $("nothing").textContent = why;
  $("nothing").hidden = false;
}

async function read(signal) {
  const query = selected === null ? "" : `?stream=${encodeURIComponent(selected)}`;
  const response = await fetch(`feed${query}`, { headers: { Authorization: `Bearer ${token}` }, cache: "no-store", signal });
  if (response.status === 401)
    throw new Refused("This page needs the token of its address: open the one that streamkit printed when it started.");
  if (response.status === 503) throw new Error(await response.text());
  if (!response.ok) throw new Refused(`${response.status}: ${visibleLine(await response.text())}`);
  state("connected", "good");
  $("resting").textContent = "";
  const lines = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = [];
  for (;;) {
    const { value, done } = await lines.read();
    if (done || signal.aborted) return;
    const parts = value.split("\n");
    while (parts.length > 1) {
      rest.push(parts.shift());
      const line = rest.join("");
      rest = [];
      if (line) take(JSON.parse(line));
    }
    rest.push(parts[0]);
    refresh();
  }
}

function state(text, kind) {
  $("state").textContent = text;
  $("state").className = kind;
}

let isFirst = true; // the first list of a connection is all of it
let touched = new Set();
let listChanged = false;

function take(message) {
  if (message.type === "upstreams") {
    const rests = message.resting.map(({ upstream, why }) => `${visibleLine(upstream)} (${visibleLine(why)})`);
    $("resting").textContent = rests.length ? `resting: ${rests.join(", ")}` : "";
    return;
  }
  if (message.type === "streams") {
    const wasFirst = isFirst;
    isFirst = false;
    if (wasFirst) streams.clear();
    for (const stream of message.changed) streams.set(stream.id, stream);
    for (const id of message.gone) streams.delete(id);
    if (wasFirst && !streams.has(selected)) selected = null;
    listChanged = true;
    return;
  }
  const row = view?.take(message);
  if (row) touched.add(row);
}

function refresh() {
  if (listChanged) {
    listChanged = false;
    list();
    if (selected === null && streams.size) open(ordered()[0].id);
  }
  const stream = streams.get(selected);
  if (!view || !stream) return;
  if (view.timed) view.reach(stream.seconds);
  for (const row of touched) steps.show(row);
  touched = new Set();
  describe(stream);
  waterfall.draw(view);
}

// -- the list ---------------------------------------------------------------------------------------------------------

/** The newest first; recordings as they were named. */
const ordered = () => {
  const all = [...streams.values()];
  return all.every((stream) => stream.about.file) ? all : all.reverse();
};

function list() {
  const items = ordered().map((stream) => {
    const name = visibleLine(nameOf(stream));
    const item = element("li", "", element("span", "name", name), badge(stream), element("span", "sub", subtitle(stream)));
    item.id = `stream-${stream.id}`;
    item.title = name;
    item.dataset.id = stream.id;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(stream.id === selected));
    return item;
  });
  $("streams").replaceChildren(...items);
  const active = items.find((item) => item.dataset.id === selected);
  if (active) $("streams").setAttribute("aria-activedescendant", active.id);
  $("nothing").hidden = items.length > 0;
}

const nameOf = (stream) => stream.about.file ?? stream.about.model ?? stream.id;

/** The colours of how a stream or an attempt ended; any other end is bad. A client that left is no failure. */
const KINDS = { live: "live", "under way": "live", whole: "good", success: "good", answered: "good", "client left": "left", client_left: "left" };
const kindOf = (word) => KINDS[word] ?? "bad";

const badge = (stream) => element("span", `badge ${kindOf(stateOf(stream))}`, stateOf(stream));

/** What tells streams of one model apart: when, from whom to which upstream, how long, and how much came. */
function subtitle(stream) {
  const { upstream, dialect } = stream.attempts.at(-1) ?? {};
  const ends = stream.about.file ? [dialect, stream.client] : [stream.client, upstream];
  const said = [stream.about.asked, ends.filter(Boolean).join(" → ")];
  if (stream.timed) {
    said.unshift(new Date(stream.began * 1000).toLocaleTimeString());
    said.push(seconds(stream.seconds));
  } else said.push(plural(stream.bytes, "byte"));
  const tokens = stream.ended?.usage?.output;
  if (tokens !== undefined) said.push(plural(tokens, "token"));
  return said.filter(Boolean).map(visibleLine).join(", ");
}

function open(id) {
  if (id === selected || !streams.has(id)) return;
  selected = id;
  list();
  follow();
}

$("streams").addEventListener("click", (event) => {
  const item = event.target.closest("li");
  if (item) open(item.dataset.id);
});
$("streams").addEventListener("keydown", (event) => {
  const all = ordered();
  const at = all.findIndex((stream) => stream.id === selected);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  if (!all[to]) return;
  open(all[to].id);
  $(`stream-${all[to].id}`).scrollIntoView({ block: "nearest" });
});

// -- the stream -------------------------------------------------------------------------------------------------------

function begin(stream) {
  view = new View(stream.timed, stream.stall_s);
  touched = new Set();
  drawn = {};
  const encodes = stream.client !== null;
  steps.clear(stream.timed, encodes, stream.ended === null);
  $("axis-head").textContent = stream.timed ? "time" : "byte";
  $("encoded-head").hidden = !encodes;
  for (const id of ["said", "calls", "found", "attempts"]) $(id).replaceChildren();
  $("stream").hidden = false;
  describe(stream);
}

/** What is drawn of each part, so that a part which did not change stays as it is, with what the reader selected in it. */
let drawn = {};

function redraw(part, key, draw) {
  if (drawn[part] === key) return;
  drawn[part] = key;
  draw();
}

function describe(stream) {
  $("title").textContent = visibleLine(nameOf(stream));
  const known = facts(stream);
  redraw("facts", JSON.stringify(known), () =>
    $("facts").replaceChildren(
      ...known.map(([name, value, kind]) => element("div", kind ?? "", element("dt", "", name), element("dd", "", value))),
    ),
  );
  said();
  calls();
  found();
  attempts(stream);
}

function facts(stream) {
  const first = view.firstOutput;
  const { usage, response, stops } = view;
  const tokens = (number) => (number === undefined ? "unknown" : count(number));
  const known = [["state", stateOf(stream), kindOf(stateOf(stream))]];
  if (stream.ended?.status) known.push(["status", String(stream.ended.status)]);
  const error = stream.ended?.error || view.failure;
  if (error) known.push(["error", visibleLine(error), "wide bad"]);
  if (!stream.about.file && stream.attempts.length) known.push(["upstream", visibleLine(stream.attempts.at(-1).upstream)]);
  known.push(["from", visibleLine(stream.attempts.at(-1)?.dialect ?? "nobody yet")]);
  if (stream.client) known.push(["to", visibleLine(stream.client)]);
  if (response?.model) known.push(["model", visibleLine(response.model)]);
  if (stops.length) known.push(["stop", stops.map((stop) => visibleLine(stop.reason)).join(", ")]);
  if (usage) known.push(["tokens", `${tokens(usage.input_total)} in, ${tokens(usage.output_total)} out`]);
  if (stream.timed) {
    known.push(["duration", seconds(stream.seconds)]);
    if (first !== null) known.push(["first output", seconds(first)]);
    known.push(["longest pause", seconds(view.gap)]);
    known.push(["stalls", count(view.stalls.length), view.stalls.length ? "bad" : ""]);
  }
  known.push([stream.timed ? "reads" : "frames", count(view.reads)]);
  if (view.keepAlives) known.push(["keep-alives", count(view.keepAlives)]);
  if (!stream.about.file) known.push(["request", visibleLine(stream.id)]);
  if (stream.left_out) known.push(["not kept", `${plural(stream.left_out, "byte")} of a long stream`, "bad"]);
  return known;
}

const stateOf = (stream) => (stream.ended === null ? "live" : (stream.ended.ending ?? "ended"));

function said() {
  const key = [...view.said.values()].map((each) => each.pieces.length).join();
  redraw("said", key, () => {
    const box = $("said");
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
    box.replaceChildren(
      ...[...view.said.values()].map(({ name, kind, pieces }) =>
        element("div", `part ${kind}`, element("h4", "", name), element("p", "", visible(pieces.join("")))),
      ),
    );
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  });
  $("said-section").hidden = view.said.size === 0;
}

function calls() {
  const all = [...view.calls.values()];
  const key = all.map((call) => `${call.pieces.length}${call.finished !== null}`).join();
  redraw("calls", key, () => $("calls").replaceChildren(...all.map(callCard)));
  $("calls-section").hidden = all.length === 0;
}

function callCard(call) {
  const verdict = call.finished ? (call.finished.verdict?.kind ?? "unchecked") : "growing";
  const kind = verdict === "growing" ? "live" : isGood(call.finished.verdict) ? "good" : "bad";
  const head = element("h4", "", visibleLine(call.name || "(no name)"), element("span", `badge ${kind}`, verdict));
  const card = element("div", "call", head, element("span", "sub", visibleLine(call.id ?? "")));
  const { reason, position } = call.finished?.verdict ?? {};
  if (reason) {
    const where = position === undefined ? "" : ` at character ${count(position)}`;
    card.append(element("p", "bad", visibleLine(reason) + where));
  }
  card.append(element("pre", "", visible(call.finished?.arguments ?? call.pieces.join(""))));
  return card;
}

function found() {
  redraw("found", String(view.found.length), () => {
    const groups = new Map();
    for (const each of view.found) {
      const key = `${each.what} ${each.kind}`;
      const group = groups.get(key) ?? { ...each, times: 0, places: [] };
      group.times += each.times;
      group.places.push(each);
      groups.set(key, group);
    }
    $("found").replaceChildren(...[...groups.values()].map(foundItem));
  });
  $("found-section").hidden = view.found.length === 0;
}

function foundItem({ what, kind, times, meaning, places }) {
  const item = element("li", what, element("b", "", `${what} ${kind}${times > 1 ? ` ×${times}` : ""}`), " ", meaning, " ");
  for (const place of places.slice(0, 5)) {
    const link = element("button", "more", `byte ${count(place.at)}`);
    link.addEventListener("click", () => choose(place.row));
    item.append(link, " ");
  }
  if (places.length > 5) item.append(`and ${count(places.length - 5)} more places`);
  return item;
}

function attempts(stream) {
  const told = stream.ended?.attempts ?? [];
  const last = stream.ended === null ? "under way" : stateOf(stream); // where nobody says what became of each
  redraw("attempts", JSON.stringify([stream.attempts, told, last]), () =>
    $("attempts").replaceChildren(
      ...stream.attempts.map(({ upstream, dialect }, number) => {
        const { outcome = last, seconds: took, detail } = told[number] ?? {};
        const item = element("li", "", element("b", "", visibleLine(upstream)), ` ${visibleLine(dialect)} `);
        item.append(element("span", `badge ${kindOf(outcome)}`, visibleLine(outcome)));
        if (took !== undefined) item.append(` ${seconds(took)}`);
        if (detail) item.append(element("p", "sub", visibleLine(detail)));
        return item;
      }),
    ),
  );
  $("attempts-section").hidden = !stream.timed || stream.attempts.length === 0;
}

// -- the place that is looked at --------------------------------------------------------------------------------------

function choose(number) {
  const row = view?.rows[number];
  if (!row) return;
  view.chosen = number;
  steps.choose(number);
  waterfall.draw(view);
  const slider = $("waterfall");
  slider.setAttribute("aria-valuemax", String(view.rows.length - 1));
  slider.setAttribute("aria-valuenow", String(number));
  slider.setAttribute("aria-valuetext", view.timed ? seconds(row.x) : `byte ${row.x}`);
}

function moved(event) {
  if (!view) return;
  const last = view.rows.length - 1;
  const { chosen } = view;
  const to = {
    ArrowDown: chosen + 1,
    ArrowRight: chosen + 1,
    ArrowUp: chosen - 1,
    ArrowLeft: chosen - 1,
    PageDown: chosen + 10,
    PageUp: chosen - 10,
    Home: 0,
    End: last,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(Math.max(0, Math.min(last, to)));
}

$("steps").addEventListener("keydown", moved);
$("waterfall").addEventListener("keydown", moved);
follow();
