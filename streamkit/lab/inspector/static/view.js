// What is known of the stream that is shown: its rows, its lanes, its calls, and the facts beside them.

const DELTAS = { TextDelta: "text", ReasoningDelta: "reasoning", RefusalDelta: "refusal" };

/** Events in which the model says something (streamkit/web/output_times.py times the same). */
const OUTPUT = new Set([...Object.keys(DELTAS), "ToolCallStarted", "ToolCallArguments"]);

/** Whether a verdict lets a call be run. */
export const isGood = (verdict) => ["complete", "empty"].includes(verdict?.kind);

export class View {
  timed = true;
  rows = [];
  lanes = new Map();
  said = new Map();
  calls = new Map();
  found = [];
  stalls = [];
  span = 0;
  chosen = -1;
  ended = false;
  usage = null;
  stops = [];
  response = null;
  failure = null;
  gap = 0;
  firstOutput = null;
  reads = 0;
  writes = 0;
  keepAlives = 0;
  #readAt = null;
  #stall;

  /** `stall`: the seconds of a pause that is one. */
  constructor(timed, stall) {
    this.timed = timed;
    this.#stall = stall;
    this.#lane("reads", timed ? "reads" : "frames", "reads");
  }

  /** Take one message of the feed; returns the row that is new or changed, if one is. */
  take(message) {
    const x = this.timed ? message.at : message.offset;
    switch (message.type) {
      case "attempt":
        return this.timed ? this.#row({ ...message, kind: "attempt", x }) : null;
      case "read":
        return this.#read(message, x);
      case "end":
        if (message.error) this.failure = message.error;
        if (this.timed) this.#pause(x);
        this.#readAt = null;
        return this.#interpret(this.#row({ ...message, kind: "end", x }), message);
      case "write":
      case "keep-alive":
        return this.#write(message);
      case "ended":
        this.ended = true;
    }
    return null;
  }

  /** How long it took, or how many bytes it has: as far as the axis goes. */
  reach(x) {
    this.span = Math.max(this.span, x);
  }

  #lane(key, name, colour, isSpan = false) {
    if (!this.lanes.has(key)) this.lanes.set(key, { name, colour, isSpan, marks: [], from: null, to: 0 });
    return this.lanes.get(key);
  }

  #mark(lane, x, size) {
    lane.marks.push([x, size]);
    lane.from ??= x;
    lane.to = x;
  }

  #row(row) {
    row.number = this.rows.length;
    row.encoded = [];
    row.found = "";
    row.gap = this.rows.length ? row.x - this.rows.at(-1).x : 0;
    this.rows.push(row);
    this.reach(row.x);
    return row;
  }

  #read(message, x) {
    this.reads += 1;
    this.#mark(this.lanes.get("reads"), x, message.size);
    if (!this.timed) this.reach(message.offset + message.size);
    else if (message.events.some(({ type }) => OUTPUT.has(type))) this.#pause(x);
    if (message.alive) {
      this.keepAlives += 1;
      this.#mark(this.#lane("alive", "keep-alives in", "alive"), x, message.size);
    }
    return this.#interpret(this.#row({ ...message, kind: "read", x }), message);
  }

  /** The model says something, or no more. */
  #pause(x) {
    const pause = this.#readAt === null ? 0 : x - this.#readAt;
    this.gap = Math.max(this.gap, pause);
    if (pause > this.#stall) this.stalls.push([this.#readAt, x]);
    this.#readAt = x;
  }

  #write(message) {
    this.writes += 1;
    const last = this.rows.at(-1);
    const isAlive = message.type === "keep-alive";
    const x = this.timed ? message.at : (last?.x ?? 0);
    if (isAlive) {
      this.keepAlives += 1;
      this.#mark(this.#lane("kept", "keep-alives out", "alive"), x, message.size);
    }
    if (!isAlive && this.timed) this.#mark(this.#lane("written", "to the client", "reads"), x, message.size);
    const row = last && !isAlive && last.kind !== "keep-alive" ? last : this.#row({ kind: message.type, x, at: message.at });
    row.encoded.push(message);
    return row;
  }

  #interpret(row, message) {
    for (const event of message.events) this.#event(event, row);
    for (const [kind, counted] of [["repair", message.repairs], ["loss", message.losses]]) {
      for (const each of counted) {
        this.found.push({ ...each, what: kind, row: row.number });
        row.found = row.found === "repair" ? "repair" : kind;
      }
    }
    return row;
  }

  #event(event, row) {
    const { x } = row;
    const delta = DELTAS[event.type];
    const choice = event.choice ?? 0;
    const of = choice ? ` of choice ${choice}` : "";
    if (delta) {
      this.firstOutput ??= x;
      const key = `${delta} ${choice}`;
      this.#mark(this.#lane(key, delta + of, delta), x, event.text.length);
      if (!this.said.has(key)) this.said.set(key, { name: delta + of, kind: delta, pieces: [] });
      this.said.get(key).pieces.push(event.text);
      return;
    }
    switch (event.type) {
      case "ResponseStarted":
        this.response = event;
        break;
      case "ToolCallStarted": {
        this.firstOutput ??= x;
        const key = `${choice} ${event.call}`;
        this.calls.set(key, { ...event, pieces: [], finished: null, doomed: null });
        this.#mark(this.#lane(`call ${key}`, `call ${event.call}${of} ${event.name ?? ""}`, "call", true), x, 8);
        break;
      }
      case "ToolCallArguments": {
        const key = `${choice} ${event.call}`;
        this.calls.get(key)?.pieces.push(event.fragment);
        this.#mark(this.#lane(`call ${key}`, `call ${event.call}${of}`, "call", true), x, event.fragment.length);
        break;
      }
      case "ToolCallFinished": {
        const key = `${choice} ${event.call}`;
        const call = this.calls.get(key);
        if (call) call.finished = event;
        const lane = this.#lane(`call ${key}`, `call ${event.call}${of}`, "call", true);
        lane.to = x;
        if (!isGood(event.verdict)) Object.assign(lane, { colour: "bad", name: `${lane.name}: ${event.verdict?.kind ?? "unchecked"}` });
        break;
      }
      case "UsageReported":
        this.usage = event;
        break;
      case "ResponseFinished":
        this.stops.push(event);
        break;
      case "ProviderFailed":
        this.failure = event.message;
        break;
    }
  }
}
