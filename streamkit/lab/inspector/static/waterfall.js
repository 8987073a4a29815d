// When what came: a lane for each thing that grew, over time, or over bytes where a recording has no times.

import { count, seconds, visibleLine } from "./text.js";

const LANE = 22;
const TOP = 18;
const AXIS = 22;
const MARK = 2;

/** The colours of the style sheet. */
function palette(canvas) {
  const style = getComputedStyle(canvas);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

function step(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
}

export class Waterfall {
  #canvas;
  #select;
  #waiting = false;
  #view = null;
  #left = 0;

  /** `select` is called with the number of a row. */
  constructor(canvas, select) {
    this.#canvas = canvas;
    this.#select = select;
    canvas.addEventListener("click", (event) => this.#point(event));
    canvas.addEventListener("pointermove", (event) => event.buttons && this.#point(event));
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Draw `view` at the next frame, or the one from before. */
  draw(view = this.#view) {
    this.#view = view;
    if (!view || this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.#paint();
    });
  }

  #point(event) {
    const view = this.#view;
    if (!view || !view.rows.length) return;
    const width = this.#canvas.clientWidth - this.#left - 8;
    const x = ((event.offsetX - this.#left) / width) * view.span;
    let best = 0;
    view.rows.forEach((row, number) => {
      if (Math.abs(row.x - x) < Math.abs(view.rows[best].x - x)) best = number;
    });
    this.#select(best);
  }

  #paint() {
    const view = this.#view;
    const canvas = this.#canvas;
    const colour = palette(canvas);
    const lanes = [...view.lanes.values()];
    const width = canvas.clientWidth;
    const height = TOP + lanes.length * LANE + AXIS;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "12px ui-sans-serif, system-ui, sans-serif";
    context.textBaseline = "middle";
    this.#left = Math.min(width * 0.36, 16 + Math.max(60, ...lanes.map((lane) => context.measureText(visibleLine(lane.name)).width)));
    const left = this.#left;
    const inner = width - left - 8;
    const at = (x) => left + (view.span ? (x / view.span) * inner : 0);
    this.#lanes(context, lanes, colour, left, width);
    this.#pauses(context, view, colour, at, height);
    this.#ticks(context, view, colour, at, inner, height);
    lanes.forEach((lane, number) => this.#lane(context, lane, colour, at, TOP + number * LANE));
    for (const row of view.rows) {
      if (row.kind === "attempt") this.#line(context, at(row.x), height, colour("muted"), [3, 3]);
      if (row.found) this.#flag(context, at(row.x), colour(row.found));
    }
    const chosen = view.rows[view.chosen];
    if (chosen) this.#line(context, at(chosen.x), height, colour("accent"), []);
  }

  #lanes(context, lanes, colour, left, width) {
    lanes.forEach((lane, number) => {
      const y = TOP + number * LANE;
      context.fillStyle = number % 2 ? colour("ground") : colour("raised");
      context.fillRect(0, y, width, LANE);
      context.fillStyle = colour("ink");
      context.save();
      context.beginPath();
      context.rect(0, y, left - 8, LANE);
      context.clip();
      context.fillText(visibleLine(lane.name).slice(0, 60), 6, y + LANE / 2 + 1);
      context.restore();
    });
  }

  #ticks(context, view, colour, at, inner, height) {
    if (!view.span) return;
    const size = step(view.span, Math.max(2, inner / 110));
    context.textAlign = "center";
    for (let x = 0; x <= view.span * 1.0001; x += size) {
      context.fillStyle = colour("line");
      context.fillRect(Math.round(at(x)), TOP, 1, height - TOP - AXIS);
      context.fillStyle = colour("muted");
      const label = view.timed && x ? seconds(x).replace(/\.?0+ s$/, " s") : count(Math.round(x));
      const half = context.measureText(label).width / 2;
      context.fillText(label, Math.min(at(x), context.canvas.clientWidth - half - 2), height - AXIS / 2 + 2);
    }
    context.textAlign = "left";
  }

  #pauses(context, view, colour, at, height) {
    for (const [from, to] of view.stalls) {
      context.fillStyle = colour("stall");
      context.fillRect(at(from), TOP, at(to) - at(from), height - TOP - AXIS);
      context.fillStyle = colour("ink");
      const label = `stall ${seconds(to - from)}`;
      if (context.measureText(label).width + 16 < at(to) - at(from)) context.fillText(label, at(from) + 12, TOP - 8);
    }
  }

  /** At most one mark for each pixel, however many events there are. */
  #lane(context, lane, colour, at, y) {
    context.fillStyle = colour(lane.colour);
    if (lane.from !== null && lane.isSpan) {
      context.globalAlpha = 0.22;
      context.fillRect(at(lane.from), y + 4, Math.max(MARK, at(lane.to) - at(lane.from)), LANE - 8);
      context.globalAlpha = 1;
    }
    let last = -1;
    let tallest = 0;
    for (const [x, size] of lane.marks) {
      const pixel = Math.round(at(x));
      const tall = Math.min(LANE - 6, 6 + Math.log2(1 + size) * 1.4);
      if (pixel === last && tall <= tallest) continue;
      context.fillRect(pixel, y + (LANE - tall) / 2, MARK, tall);
      tallest = pixel === last ? Math.max(tall, tallest) : tall;
      last = pixel;
    }
  }

  #line(context, x, height, stroke, dash) {
    context.strokeStyle = stroke;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, TOP - 4);
    context.lineTo(Math.round(x) + 0.5, height - AXIS);
    context.stroke();
    context.setLineDash([]);
  }

  #flag(context, x, fill) {
    context.fillStyle = fill;
    context.beginPath();
    context.moveTo(x - 4, 3);
    context.lineTo(x + 6, 3);
    context.lineTo(x + 1, 12);
    context.fill();
  }
}
