// The waterfall: partitions as rows, stages as bars over one axis of time.
//
// The spans of ended stages come from the daemon. The stage that a partition is in now
// comes from the status. All times are of the daemon's clock, in seconds.

const SVG = "http://www.w3.org/2000/svg";

// Rows that are shown: partitions that run come first, then those that ended last.
const ROWS_MAX = 32;
const PAST_ROWS_MAX = 16;

// The length of the axis: at least this, and at most as long as the daemon's history.
const AXIS_MIN_S = 15;
const AXIS_MAX_S = 600;

// Each stage: its words, its colour's class, and its level. Level 1 lies inside level 0.
const STAGES = {
  decode_wait: ["waits to be decoded", "wait", 0],
  decode: ["decoding", "load", 0],
  queue_wait: ["queued", "wait", 0],
  circuit: ["circuit", "load", 0],
  params: ["parameters", "load", 0],
  memory_wait: ["waits for memory", "wait", 0],
  witness: ["witness", "witness", 0],
  circuit_witness: ["witness", "witness", 0],
  columns: ["bits of several partitions", "device", 0],
  evaluate: ["evaluation", "evaluate", 0],
  ready_wait: ["waits for a device", "wait", 0],
  prepare: ["preparation", "load", 0],
  staging: ["to the device", "load", 0],
  lock_wait: ["waits for the lock", "wait", 0],
  device: ["device", "device", 0],
  quotient: ["quotient", "device-part", 1],
  msm: ["MSMs", "device-part", 1],
  finish_wait: ["waits to finish", "wait", 0],
  finish: ["finishing", "finish", 0],
  b_g2_wait: ["waits for the MSM in G2", "finish-part", 1],
  b_g2: ["MSM in G2", "finish-part", 1],
  assemble: ["assembly", "finish-part", 1],
  verify: ["verification", "finish-part", 1],
  elsewhere: ["on another machine", "device", 0],
  dealloc: ["memory returned", "wait", 0],
  // The daemon says no stage: the partition has begun, and waits for its next stage.
  between: ["between stages", "wait", 0],
};

const LEGEND = [
  ["wait", "waiting"],
  ["load", "loading"],
  ["witness", "witness"],
  ["evaluate", "evaluation"],
  ["device", "device"],
  ["device-part", "quotient, MSMs"],
  ["finish", "finishing"],
];

// What encloses a stage of level 1. The enclosing span comes only when it has ended.
const ENCLOSING = { "device-part": "device", "finish-part": "finish" };

export function stageName(stage) {
  return stage ? (STAGES[stage]?.[0] ?? stage) : "queued";
}

// True for a partition that was worked on, even if it is between two stages now.
export function hasBegun(part) {
  return Boolean(part.stage) || part.synthesis_s > 0 || part.device_s > 0;
}

export function element(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function drawLegend(list) {
  for (const [name, words] of LEGEND) {
    const item = document.createElement("li");
    const patch = element("svg", { "aria-hidden": "true" });
    patch.append(element("rect", { class: name, width: "100%", height: "100%" }));
    item.append(patch, words);
    list.append(item);
  }
}

// Collects spans, and forgets those that are older than the axis can be.
export class Spans {
  constructor() {
    this.clear();
  }

  clear() {
    this.partitions = new Map();
  }

  add(spans, now) {
    for (const [job, partition, device, stage, start, end] of spans) {
      if (partition === null || stage === "dealloc") continue;
      const key = `${job}/${partition}`;
      const spansOf = this.partitions.get(key) ?? { job, partition, bars: [] };
      spansOf.bars.push({ stage, device, start, end });
      this.partitions.set(key, spansOf);
    }
    for (const [key, spansOf] of this.partitions) {
      spansOf.bars = spansOf.bars.filter((bar) => bar.end > now - AXIS_MAX_S);
      if (spansOf.bars.length === 0) this.partitions.delete(key);
    }
  }

  // The share of the time since `from` in which a device was busy, or null without devices.
  // A device that is busy now has no span yet, but the time since when it is.
  busy(devices, from, now, age) {
    if (devices.length === 0) return null;
    let busy = 0;
    for (const { bars } of this.partitions.values()) {
      for (const bar of bars) {
        if (bar.stage === "device") busy += Math.max(0, bar.end - Math.max(bar.start, from));
      }
    }
    for (const { busy_s } of devices) {
      if (typeof busy_s === "number") busy += Math.min(busy_s + age, now - from);
    }
    return busy / devices.length / (now - from);
  }
}

// The rows of the waterfall: each has a key, a name, a partition, a stage, a time and bars.
// The time is that in the stage; for a partition that ended, it is that of all its work.
export function rows(spans, engine, names, age, now) {
  const live = [];
  const seen = new Set();
  for (const job of engine.jobs) {
    for (const part of job.parts) {
      const key = `${job.number}/${part.index}`;
      if (part.done || !hasBegun(part)) continue;
      seen.add(key);
      const bars = [...(spans.partitions.get(key)?.bars ?? [])];
      const stage = part.stage ?? "between";
      const left = Math.max(...bars.map((bar) => bar.end), 0);
      const forSeconds = part.stage ? part.since_s + age : now - (left || now);
      bars.push({ stage, start: now - forSeconds, end: now, open: true });
      live.push({ key, name: names(job.number), partition: part.index, stage, forSeconds, bars });
    }
  }
  const past = [];
  for (const [key, { job, partition, bars }] of spans.partitions) {
    if (seen.has(key)) continue;
    const worked = bars.filter((bar) => bar.stage !== "queue_wait");
    const end = Math.max(...bars.map((bar) => bar.end));
    const forSeconds = end - Math.min(end, ...worked.map((bar) => bar.start));
    past.push({ key, name: names(job), partition, stage: null, forSeconds, end, bars });
  }
  past.sort((a, b) => b.end - a.end);
  const start = (row) => Math.min(...row.bars.map((bar) => bar.start));
  live.sort((a, b) => start(b) - start(a));
  const shown = live.slice(0, ROWS_MAX);
  const room = Math.min(PAST_ROWS_MAX, ROWS_MAX - shown.length);
  const kept = past.slice(0, room);
  return { rows: [...shown, ...kept], live: live.length };
}

// The start of the axis: the work of what is shown, without its time in the queue.
export function axisStart(rows, now) {
  const worked = rows.flatMap((row) => row.bars.filter((bar) => bar.stage !== "queue_wait"));
  const first = Math.min(now, ...worked.map((bar) => bar.start));
  const length = Math.min(AXIS_MAX_S, Math.max(AXIS_MIN_S, now - first));
  return now - length;
}

// Ticks at round distances, as seconds before now.
export function ticks(length) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300];
  const step = steps.find((step) => length / step <= 6) ?? 300;
  const marks = [];
  for (let ago = 0; ago <= length; ago += step) marks.push(ago);
  return marks;
}

export function drawAxis(holder, length) {
  const axis = element("svg", { "aria-hidden": "true" });
  for (const ago of ticks(length)) {
    const x = `${(1 - ago / length) * 100}%`;
    const anchor = ago === 0 ? "end" : ago > 0.96 * length ? "start" : "middle";
    const text = element("text", { x, y: 12, "text-anchor": anchor });
    text.textContent = ago === 0 ? "now" : length > 120 ? `−${ago / 60} min` : `−${ago} s`;
    axis.append(text);
  }
  holder.replaceChildren(axis);
}

export function drawBars(cell, bars, from, now) {
  const length = now - from;
  const picture = element("svg", { "aria-hidden": "true" });
  for (const ago of ticks(length)) {
    const x = `${(1 - ago / length) * 100}%`;
    picture.append(element("line", { class: "grid", x1: x, x2: x, y1: 0, y2: "100%" }));
  }
  const level = (bar) => STAGES[bar.stage]?.[2] ?? 0;
  const wide = [...bars].sort((a, b) => level(a) - level(b) || a.start - b.start);
  const has = new Set(bars.map((bar) => STAGES[bar.stage]?.[1]));
  for (const bar of wide) {
    if (bar.end <= from) continue;
    const [words, colour, inside] = STAGES[bar.stage] ?? [bar.stage, "wait", 0];
    // A part whose enclosing stage has not ended is drawn as high as that stage.
    const alone = inside === 1 && !has.has(ENCLOSING[colour]);
    const start = Math.max(bar.start, from);
    const width = Math.max(0.15, ((bar.end - start) / length) * 100);
    const thin = colour === "wait";
    const rect = element("rect", {
      class: alone ? ENCLOSING[colour] : colour,
      x: `${((start - from) / length) * 100}%`,
      width: `${width}%`,
      y: thin ? "36%" : inside && !alone ? "30%" : "8%",
      height: thin ? "28%" : inside && !alone ? "40%" : "84%",
      rx: 1,
    });
    const title = element("title");
    title.textContent = `${words}: ${(bar.end - bar.start).toFixed(2)} s${bar.open ? " so far" : ""}`;
    rect.append(title);
    picture.append(rect);
  }
  cell.replaceChildren(picture);
}
