import { readFirst, read, laneHistory, members, setToken, isStale } from "./api.js";
import { h, become } from "./dom.js";
import { span, count, number } from "./words.js";
import { remember, recall } from "./history.js";
import { view } from "./view.js";
import { openTenant, refreshTenant } from "./tenant.js";

const beat = 1000; // how often the page asks, in ms
const slow = 3; // what changes slowly or costs more is asked for each so many beats

const seen = { pool: "", recalled: "", held: [], tenants: null, permits: null, members: null, reason: "", find: "" };
let beats = 0, failing = 0, heard = 0, locked = false, timer = 0, busy = false;

// look asks for all that is shown, one after the other, and shows it.
async function look() {
  clearTimeout(timer);
  if (busy || locked || document.hidden) return;
  busy = true;
  try {
    seen.health = await readFirst("StatusService/QueueHealth");
    remember(seen.health, Date.now());
    const pools = seen.health.pools ?? [];
    if (!pools.some((p) => p.pool === seen.pool)) select(pools[0]?.pool ?? "");
    await lookCloser(beats++ % slow === 0);
    failing = 0;
    heard = Date.now();
  } catch (failure) {
    trouble(failure);
  }
  busy = false;
  show();
  timer = setTimeout(look, beat);
}

async function lookCloser(closely) {
  const pool = seen.pool;
  if (!pool) return;
  if (seen.recalled !== pool) {
    recall(pool, (await laneHistory(pool)).samples ?? [], Date.now());
    seen.recalled = pool;
  }
  const request = { pool, n: 100 };
  if (seen.reason) request.reason = seen.reason;
  const held = (await read("StatusService/TopShed", request)).tenants ?? [];
  if (pool === seen.pool) seen.held = held;
  if (closely || !seen.tenants) {
    const tenants = await read("StatusService/ListTenants", { pool, page_size: 1000 });
    const permits = await read("StatusService/ListPermits", { pool, page_size: 10 });
    if (pool === seen.pool) Object.assign(seen, { tenants, permits });
    seen.members = await members();
  }
  await refreshTenant();
}

function trouble(failure) {
  if (failure.status === 401) {
    locked = true;
    document.getElementById("login").showModal();
    return;
  }
  failing ||= Date.now();
  seen.trouble = failure.status === undefined ? String(failure) : failure.message;
}

// select turns to a pool, and forgets what was of another.
function select(pool) {
  if (pool === seen.pool) return;
  Object.assign(seen, { pool, held: [], tenants: null, permits: null, reason: "", find: "" });
  if (pool && location.hash !== "#" + encodeURIComponent(pool)) history.replaceState(null, "", "#" + encodeURIComponent(pool));
}

const actions = {
  select(pool) { select(pool); show(); look(); },
  tenant: (name, lanes) => openTenant(seen.pool, name, lanes, seen.health),
  onlyReason(name) { seen.reason = seen.reason === name ? "" : name; show(); look(); },
  find(text) { seen.find = text; show(); },
};

function show() {
  const alert = document.getElementById("trouble");
  const old = seen.health?.age;
  const told = failing ? `${seen.trouble}, for ${span((Date.now() - failing) / 1000)} now. What you see is older than that; the page goes on asking.`
    : isStale() ? `No node leads at present. What you see is what this node knows${old === undefined ? "" : ", heard " + span(old) + " ago"}.` : "";
  alert.hidden = !told;
  if (alert.textContent !== told) alert.textContent = told;
  document.getElementById("now").replaceChildren(...now());
  if (seen.health) become(document.getElementById("main"), h("main", {}, view(seen, actions)));
}

// now is the line beside the name: which node answers, and how far the cluster is.
function now() {
  const health = seen.health ?? {};
  const live = !failing && !isStale() && heard > 0;
  const leader = seen.members?.leader_id, self = seen.members?.node_id;
  return [
    h("span", { class: "live " + (live ? "on" : "off") }, live ? "live" : "waiting"),
    self && h("span", {}, `node ${self}`, leader === self ? " leads" : ""),
    h("span", {}, `policy ${count(health.policy_revision)}`),
    h("span", { id: "index", "data-index": number(health.log_index) }, `log ${count(health.log_index)}`),
  ].filter(Boolean);
}

document.querySelector("#login form").onsubmit = () => {
  const field = document.getElementById("token");
  setToken(field.value);
  field.value = "";
  locked = false;
  document.getElementById("login-error").textContent = "The token before was not known.";
  look();
};
document.getElementById("login").oncancel = (event) => event.preventDefault();
document.onvisibilitychange = look;
onhashchange = () => actions.select(decodeURIComponent(location.hash.slice(1)));
seen.pool = decodeURIComponent(location.hash.slice(1));
look();
