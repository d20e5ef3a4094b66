// The page: it shows each status that the daemon sends, and connects again by itself.

import { Spans, axisStart, drawAxis, drawBars, drawLegend, element, hasBegun, rows, stageName } from "./waterfall.js";

// The daemon sends something at least every 15 s. Longer silence is a lost connection.
const SILENCE_MAX_MS = 40_000;
const RETRY_MS = 3_000;

// Rows of the table of jobs.
const JOBS_MAX = 100;

// The least time between two sentences for screen readers.
const NEWS_PAUSE_MS = 5_000;

const at = (id) => document.getElementById(id);
const spans = new Spans();
const ids = new Map();
let engine = null;
let cluster = null;
let receivedMs = 0;
let clock = { nowS: 0, atMs: 0 };
let lostMs = null;
let lastHeardMs = Date.now();
let news = { text: "", atMs: 0 };

// Texts.

function seconds(s) {
  if (s === null || s === undefined) return "–";
  if (s < 9.995) return `${s.toFixed(2)} s`;
  if (s < 59.95) return `${s.toFixed(1)} s`;
  const whole = Math.round(s);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

// An age, in the steps that a person counts in.
function age(s) {
  return s < 59.5 ? `${Math.round(s)} s` : seconds(s);
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? n : n.toFixed(1)} ${units[unit]}`;
}

function count(n, one, many) {
  return `${n} ${n === 1 ? one : many}`;
}

// The daemon adds a digest of the input to an id. A few of its digits are shown if another
// job has the same id.
function short(id) {
  const [, name, digits] = id.match(/^(.*)\/([0-9a-f]{6})[0-9a-f]{26}$/s) ?? [];
  if (name === undefined) return id;
  const isShared = [...ids.values()].some((other) => other !== id && other.startsWith(`${name}/`));
  return isShared ? `${name}/${digits}…` : name;
}

// Forgets the names of jobs that nothing on the page mentions any more.
function forgetNames() {
  const named = new Set([...engine.jobs, ...engine.ended].map((job) => job.number));
  for (const { job } of spans.partitions.values()) named.add(job);
  for (const number of ids.keys()) if (!named.has(number)) ids.delete(number);
}

function jobName(job) {
  return job.id ? short(job.id) : `job ${job.number}`;
}

function clockTime(ms) {
  return new Date(ms).toLocaleTimeString();
}

// Elements. A text is written only if it changed, so that a selection stays.

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function set(id, text) {
  write(at(id), text);
}

// Makes `parent` have one child for each item, in order, and keeps those of known keys.
function keyed(parent, items, key, make, fill) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = known.get(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    known.delete(name);
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
    fill(child, item);
  }
  for (const child of known.values()) child.remove();
}

// Makes a row of the table of `body`: a head and cells, with a class for each. The roles
// are written out, since a phone's layout takes them from the elements.
function tableRow(body, classes) {
  const heads = body.closest("table").querySelectorAll("thead th");
  const row = document.createElement("tr");
  row.setAttribute("role", "row");
  classes.forEach((name, index) => {
    const cell = document.createElement(index === 0 ? "th" : "td");
    if (index === 0) cell.scope = "row";
    cell.setAttribute("role", index === 0 ? "rowheader" : "cell");
    cell.className = name;
    cell.dataset.label = heads[index].textContent.toLowerCase();
    row.append(cell);
  });
  return row;
}

function table(id, emptyId, items, key, classes, cells) {
  const fill = (row, item) => {
    cells(item).forEach((text, index) => {
      write(row.children[index], text);
      if (classes[index] === "name") row.children[index].title = item.id ?? text;
    });
    if (item.outcome) row.children[2].classList.toggle("bad", item.outcome === "failed");
  };
  keyed(at(id), items, key, () => tableRow(at(id), classes), fill);
  at(emptyId).hidden = items.length > 0;
  at(id).closest("table").hidden = items.length === 0;
}

// Sections.

function showTotals(ageS, nowS) {
  set("partitions-running", String(engine.partitions_running));
  set("partitions-waiting", String(engine.partitions_waiting));
  set("jobs", String(engine.jobs.length));
  const sum = (name) => engine.totals.reduce((all, kind) => all + kind[name], 0);
  set("proved", String(sum("proved")));
  set("failed", String(sum("failed")));
  const from = nowS - Math.min(60, Math.max(1, engine.started_s));
  const devices = engine.devices.filter((device) => device.role === "device");
  const busy = spans.busy(devices, from, nowS, ageS);
  set("device-use", busy === null ? "–" : `${Math.min(100, Math.round(busy * 100))} %`);
}

function showWaterfall(ageS, nowS) {
  const names = (number) => ids.get(number) ?? `job ${number}`;
  const shown = rows(spans, engine, names, ageS, nowS);
  const from = axisStart(shown.rows, nowS);
  const make = () => {
    const row = tableRow(at("waterfall"), ["name", "", "number", "bars"]);
    const name = document.createElement("div");
    name.append(document.createElement("span"), document.createElement("b"));
    row.children[0].append(name);
    return row;
  };
  keyed(at("waterfall"), shown.rows, (row) => row.key, make, (row, item) => {
    const [name, stage, time, bars] = row.children;
    const [job, partition] = name.firstChild.children;
    write(job, short(item.name));
    write(partition, ` · ${item.partition}`);
    name.title = `${item.name} · ${item.partition}`;
    write(stage, item.stage ? stageName(item.stage) : "ended");
    write(time, seconds(item.forSeconds));
    row.classList.toggle("past", !item.stage);
    drawBars(bars, item.bars, from, nowS);
  });
  drawAxis(at("axis"), nowS - from);
  at("waterfall").closest("table").hidden = shown.rows.length === 0;
  const more = shown.live - shown.rows.filter((row) => row.stage).length;
  at("running-empty").hidden = shown.live > 0 && more === 0;
  set("running-empty", more > 0 ? `${count(more, "more partition runs.", "more partitions run.")}` : "Nothing runs now.");
}

function jobState(job) {
  if (job.waits_for) return job.waits_for;
  if (job.state === "journal") return "waits in the journal";
  if (job.state === "waiting") return "waits for its turn";
  const running = job.parts.filter((part) => hasBegun(part) && !part.done);
  return running.length === 0 ? "between two partitions" : count(running.length, "partition runs", "partitions run");
}

function showJobs(ageS) {
  const live = engine.jobs.filter((job) => job.state === "running");
  const jobs = [...live, ...engine.jobs.filter((job) => job.state !== "running")];
  const shown = jobs.slice(0, JOBS_MAX);
  const classes = ["name", "", "", "number", "number", "wide"];
  table("jobs-rows", "jobs-empty", shown, (job) => job.number, classes, (job) => [
    jobName(job),
    job.circuit,
    job.priority,
    `${job.partitions_done} / ${job.partitions}`,
    age(job.accepted_s_ago + ageS),
    jobState(job),
  ]);
  const more = jobs.length - shown.length;
  if (more > 0) at("jobs-empty").hidden = false;
  set("jobs-empty", more > 0 ? `${count(more, "more job waits.", "more jobs wait.")}` : "No job is here.");
}

function showMemory() {
  const memory = engine.memory;
  const used = Math.max(0, memory.used_bytes - memory.idle_bytes);
  const free = Math.max(0, memory.total_bytes - memory.used_bytes - memory.kept_bytes);
  set("memory-used", bytes(used));
  set("memory-idle", bytes(memory.idle_bytes));
  set("memory-kept", bytes(memory.kept_bytes));
  set("memory-free", bytes(free));
  set("memory-total", bytes(memory.total_bytes));
  let x = 0;
  const parts = [["used", used], ["idle", memory.idle_bytes], ["kept", memory.kept_bytes]].map(([name, size]) => {
    const share = memory.total_bytes ? (size / memory.total_bytes) * 100 : 0;
    const part = element("rect", { class: name, x: `${x}%`, width: `${share}%`, height: "100%" });
    x += share;
    return part;
  });
  at("memory-bar").replaceChildren(...parts);
  at("memory-bar").setAttribute("aria-label", `${bytes(memory.used_bytes)} of ${bytes(memory.total_bytes)} are charged`);
}

function showAssets(ageS) {
  const classes = ["name", "number", "number", ""];
  table("assets-rows", "assets-empty", engine.assets, (asset) => asset.circuit, classes, (asset) => [
    asset.circuit,
    bytes(asset.parameter_bytes),
    bytes(asset.circuit_bytes),
    asset.uses > 0 ? count(asset.uses, "partition", "partitions") : `idle for ${age((asset.idle_s ?? 0) + ageS)}`,
  ]);
}

function item() {
  const made = document.createElement("li");
  const line = document.createElement("div");
  line.className = "line";
  line.append(document.createElement("h3"), document.createElement("span"));
  made.append(line, document.createElement("p"), document.createElement("p"));
  return made;
}

function fillItem(made, head, right, first, second, bad) {
  const [line, one, two] = made.children;
  write(line.children[0], head);
  write(line.children[1], right);
  write(one, first);
  write(two, second);
  two.className = bad ? "bad" : "quiet";
  two.hidden = second === "";
}

function showDevices(ageS) {
  const roles = { device: "device", critical: "worker for critical jobs", retry: "worker for retries" };
  keyed(at("devices-list"), engine.devices, (device) => `${device.device}/${device.role}`, item, (made, device) => {
    const head = `${device.device} · ${device.backend} · ${roles[device.role] ?? device.role}`;
    const busy = device.busy_s !== null && device.busy_s !== undefined;
    const state = device.quarantined ? "quarantined" : busy ? `busy for ${seconds(device.busy_s + ageS)}` : "idle";
    const done = `${count(device.proved, "partition", "partitions")} proved, ${count(device.faults, "fault", "faults")}`;
    const work = device.job ? `. It proves ${short(device.job)} · ${device.partition}.` : ".";
    const fault = device.last_fault ? `Last fault: ${device.last_fault}` : "";
    fillItem(made, head, state, done + work, fault, device.quarantined);
    made.children[0].children[1].className = device.quarantined ? "bad" : busy ? "" : "quiet";
  });
}

function showMachines(ageS) {
  at("machines").hidden = at("machines-link").hidden = cluster === null;
  if (cluster === null) return;
  const state = cluster.problem ?? `${cluster.connected ? "Connected" : "Connects"} to ${cluster.servers.join(", ")}.`;
  const open = count(cluster.open_partitions, "partition is open", "partitions are open");
  set("machines-state", `${state} ${open}.`);
  const ago = (s) => (s === null || s === undefined ? "–" : `${age(s + ageS)} ago`);
  const classes = ["name", "", "number", "number", "number", "number", "number", "wide"];
  table("machines-rows", "machines-empty", cluster.nodes, (node) => node.name, classes, (node) => [
    node.name,
    node.version ?? "–",
    String(node.running),
    String(node.proved),
    String(node.failed),
    String(node.faults),
    ago(node.progress_s_ago),
    node.loaded.join(", "),
  ]);
}

function showEnded(ageS) {
  const failures = engine.ended.filter((job) => job.outcome === "failed").slice(0, 20);
  keyed(at("failures-list"), failures, (job) => job.number, item, (made, job) => {
    const ago = `${age(job.ended_s_ago + ageS)} ago`;
    fillItem(made, jobName(job), ago, job.error ?? "no reason is known", `${job.circuit}, after ${seconds(job.total_s)}`, false);
  });
  at("failures-empty").hidden = failures.length > 0;
  const classes = ["name", "", "", "number", "number", "number", "number", "number", "number"];
  table("finished-rows", "finished-empty", engine.ended, (job) => job.number, classes, (job) => [
    jobName(job),
    job.circuit,
    job.outcome.replace("_", " "),
    `${age(job.ended_s_ago + ageS)} ago`,
    seconds(job.total_s),
    seconds(job.queue_wait_s),
    seconds(job.srs_load_s),
    seconds(job.synthesis_s),
    seconds(job.device_s),
  ]);
}

function showState() {
  const state = lostMs !== null ? "gone" : engine === null ? "connecting" : engine.draining ? "draining" : "ready";
  at("state").dataset.state = state;
  set("state-text", state === "gone" ? "no connection" : state);
  document.body.classList.toggle("stale", lostMs !== null && engine !== null);
  at("banner").hidden = lostMs === null;
  if (lostMs !== null) {
    const known = engine === null ? "" : " The figures below are from then.";
    set("banner", `The daemon has not answered since ${clockTime(lostMs)}.${known} The page connects again by itself.`);
  }
}

// Tells screen readers what changed, in one sentence, and not too often.
function tell(ms) {
  const ended = engine.ended[0];
  const last = ended ? ` Last end: ${jobName(ended)}, ${ended.outcome.replace("_", " ")}.` : "";
  const running = engine.jobs.filter((job) => job.state === "running").length;
  const text = `${count(running, "job runs", "jobs run")}, ${count(engine.jobs.length - running, "waits", "wait")}.${last}`;
  if (text === news.text || ms - news.atMs < NEWS_PAUSE_MS) return;
  news = { text, atMs: ms };
  set("news", text);
}

// Shows the last status, as old as it is now. Nothing ages while the daemon is gone.
function show() {
  showState();
  if (engine === null || lostMs !== null) return;
  const ms = Date.now();
  const ageS = Math.max(0, (ms - receivedMs) / 1000);
  const nowS = clock.nowS + Math.max(0, (ms - clock.atMs) / 1000);
  set("uptime", age(engine.started_s + ageS));
  showTotals(ageS, nowS);
  showWaterfall(ageS, nowS);
  showJobs(ageS);
  showMemory();
  showAssets(ageS);
  showDevices(ageS);
  showMachines(ageS);
  showEnded(ageS);
  tell(ms);
  document.title = engine.partitions_running > 0 ? `${engine.partitions_running} running · cuzk` : "cuzk";
}

// The connection.

let source = null;

function connect() {
  source?.close();
  source = new EventSource("/events");
  lastHeardMs = Date.now();
  source.addEventListener("spans", (event) => {
    const data = JSON.parse(event.data);
    if (data.first) spans.clear();
    clock = { nowS: data.now_s, atMs: Date.now() };
    spans.add(data.spans, data.now_s);
  });
  source.addEventListener("status", (event) => {
    const { engine: first, cluster: others = null } = JSON.parse(event.data);
    cluster = others;
    if (engine !== null && first.started_s < engine.started_s) ids.clear();
    engine = first;
    for (const job of [...engine.ended, ...engine.jobs]) if (job.id) ids.set(job.number, job.id);
    forgetNames();
    receivedMs = lastHeardMs = Date.now();
    lostMs = null;
    show();
  });
  source.addEventListener("error", lost);
}

function lost() {
  lostMs ??= Date.now();
  show();
}

setInterval(() => {
  const ms = Date.now();
  if (ms - lastHeardMs > SILENCE_MAX_MS) {
    lost();
    connect();
  } else if (source.readyState === EventSource.CLOSED && ms - lastHeardMs > RETRY_MS) {
    connect();
  }
  show();
}, 1000);

drawLegend(at("legend"));
connect();
