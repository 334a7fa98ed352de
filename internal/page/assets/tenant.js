import { read } from "./api.js";
import { h, become, table, bar } from "./dom.js";
import { count, number, span, reason, because, short, frees } from "./words.js";

const dialog = document.getElementById("tenant");
let open = null;

// openTenant shows one tenant of a pool: what it may have, and for each lane every
// limit that was consulted, what frees it, and when.
export function openTenant(pool, name, lanes, health) {
  const all = health.pools.find((p) => p.pool === pool)?.lanes?.map((l) => l.lane) ?? [];
  open = { pool, name, lanes: [...lanes, ...all.filter((l) => !lanes.includes(l))], status: null, whys: new Map(), failure: "" };
  dialog.replaceChildren();
  show();
  dialog.showModal();
  refreshTenant();
}

dialog.onclose = () => { open = null; };
dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };

// refreshTenant asks again for what the dialog shows, if it is open.
export async function refreshTenant() {
  const at = open;
  if (!at) return;
  try {
    const { pool, name: tenant } = at;
    at.status = (await read("StatusService/GetTenant", { pool, tenant })).tenant;
    at.categories ??= await categories(pool);
    for (const lane of at.lanes) {
      const category = lane === at.status.share.lane ? "" : at.categories.get(lane);
      if (category === undefined) continue; // nobody can ask for work in it
      at.whys.set(lane, (await read("StatusService/Explain", { pool, tenant, category })).explanation);
    }
    at.failure = "";
  } catch (failure) {
    at.failure = failure.message;
  }
  if (open === at) show();
}

// categories returns one category that leads to each lane.
async function categories(pool) {
  const policy = (await read("PolicyService/GetPolicy")).policy;
  const mapped = policy?.pools?.find((p) => p.name === pool)?.categories ?? {};
  return new Map(Object.entries(mapped).map(([category, lane]) => [lane, category]));
}

function show() {
  become(dialog, h("dialog", {},
    h("div", { class: "dialog-head" }, h("h2", { id: "tenant-name" }, open.name, h("small", {}, " in " + open.pool)),
      h("button", { type: "button", class: "chip", "aria-label": "Close", onclick: () => dialog.close() }, "Close")),
    open.failure && h("p", { class: "trouble", role: "alert" }, open.failure),
    open.status && standing(open.status),
    open.lanes.filter((lane) => open.whys.has(lane)).map((lane) => explained(lane, open.whys.get(lane)))));
}

function standing(t) {
  const s = t.share, source = { DEFAULT: "the policy’s defaults", POLICY: "the policy’s override", PUT: "its own row" };
  const cap = s.max_active === undefined ? "no cap" : "of " + count(s.max_active);
  return h("div", { "data-key": "standing", class: "standing" },
    h("dl", {},
      h("div", {}, h("dt", {}, "permits"), h("dd", { "data-field": "active" }, count(t.active), h("small", {}, " " + cap))),
      h("div", {}, h("dt", {}, "entitled to"), h("dd", {}, count(s.preferred_active))),
      h("div", {}, h("dt", {}, "weight"), h("dd", {}, count(s.weight))),
      h("div", {}, h("dt", {}, "entries"), h("dd", {}, count(t.entries))),
      number(t.debt) > 0 && h("div", {}, h("dt", {}, "above its cap by"), h("dd", { class: "bad" }, count(t.debt)))),
    h("p", {}, t.paused && h("span", { class: "tag bad" }, "paused"), "Its numbers are from ", source[short(t.source, "SOURCE_")] ?? "nowhere", "."),
    (t.buckets ?? []).length > 0 && h("ul", { class: "gauges" }, t.buckets.map((b) => h("li", {}, h("span", {}, b.bucket),
      h("span", { class: "n" }, count(b.level), h("small", {}, " of " + count(b.capacity))),
      bar(number(b.level), number(b.capacity), `${count(b.level)} of ${count(b.capacity)} tokens`, undefined, number(b.level) <= 0 ? "bad" : "")))));
}

// explained tells why one more request in a lane would wait, and what for.
function explained(lane, e) {
  const shed = e.shed;
  const limits = (e.limits ?? []).map((l) => ({ ...l.limit, blocks: reason(l.reason) !== "" && reason(l.reason) !== "UNSPECIFIED" }));
  return h("section", { "data-key": "why " + lane, "data-why": lane, class: "why" },
    h("h3", {}, "Lane ", lane, shed ? h("span", { class: "tag warn" }, reason(shed.reason)) : h("span", { class: "tag good" }, "free")),
    h("p", {}, shed ? because(shed.reason) + " " + when(shed) : "One more would be admitted now.", " ", line(e)),
    table("Limits in lane " + lane, [{ name: "limit" }, { name: "used", class: "n" }, { name: "of", class: "n" }, { name: "kept", class: "n" }, { name: "what frees it" }],
      limits.map((l) => ({
        key: l.name + l.scope, class: l.blocks ? "blocks" : "",
        cells: [h("span", {}, l.blocks && h("span", { class: "dot", "aria-label": "blocks: " }), l.name, h("small", {}, " " + short(l.scope, "SCOPE_").toLowerCase())),
          count(l.used), count(l.capacity), number(l.reserve) ? count(l.reserve) : "–", frees(l, l.blocks)],
      })), "No limit was consulted."));
}

function when(shed) {
  if (shed.retry_after !== undefined) return `Free in ${span(shed.retry_after)}, if nobody takes it.`;
  if (shed.earliest_expiry !== undefined) return `A release frees it, or the first expiry, in ${span(shed.earliest_expiry)}.`;
  return shed.poll_after === undefined ? "Time alone does not free it." : "A release or an operator frees it.";
}

function line(e) {
  const ahead = number(e.line?.waiting) + number(e.line?.due);
  if (!ahead) return "";
  const first = (e.line.first ?? []).map((t) => t.tenant).join(", ");
  return `${count(ahead)} ${ahead === 1 ? "stands" : "stand"} before it in the fair order${first ? ": " + first : ""}.`;
}
