import { h, part, table, bar } from "./dom.js";
import { count, number, span, reason, because, seconds, freedBy } from "./words.js";
import { past } from "./history.js";
import { chart } from "./chart.js";

// view is the whole page: the pools, and one of them closely.
export function view(seen, act) {
  const pools = seen.health.pools ?? [];
  const pool = pools.find((p) => p.pool === seen.pool);
  return [
    h("nav", { class: "pools", "data-key": "pools", "aria-label": "Pools" }, pools.map((p) => card(p, p === pool, act))),
    pools.length === 0 && h("p", { class: "none", "data-key": "none" }, "The policy has no pools."),
    pool && h("h2", { "data-key": "name" }, pool.pool, pool.draining && h("span", { class: "tag warn" }, "draining")),
    pool && h("div", { class: "grid", "data-key": "pool " + pool.pool },
      lanes(pool), held(pool, seen, act), shares(seen, act), buckets(pool), permits(seen), limits(pool), members(seen)),
  ];
}

const heldCount = (p) => (p.held ?? []).reduce((n, r) => n + number(r.tenants), 0);

function card(p, chosen, act) {
  const depth = (p.lanes ?? []).reduce((n, l) => n + number(l.depth), 0), held = heldCount(p);
  return h("button", { type: "button", class: "card", "data-key": p.pool, "data-pool": p.pool, "aria-pressed": String(chosen), onclick: () => act.select(p.pool) },
    h("strong", {}, p.pool),
    h("span", { class: "big" }, count(p.active), h("small", {}, p.max_active === undefined ? " permits" : ` of ${count(p.max_active)} permits`)),
    p.max_active !== undefined && bar(number(p.active), number(p.max_active), `${count(p.active)} of ${count(p.max_active)} slots`),
    h("span", { class: "facts" },
      h("span", {}, h("b", {}, count(depth)), " could run"),
      h("span", { class: held ? "warn" : "" }, h("b", {}, count(held)), " held"),
      h("span", { class: number(p.dead) ? "bad" : "" }, h("b", {}, count(p.dead)), " dead")));
}

function lanes(pool) {
  const now = Date.now();
  return part("lanes", "Lanes", "the highest first, over the last fifteen minutes as far as this node saw them",
    h("ul", { class: "lanes" }, (pool.lanes ?? []).map((l) => h("li", { "data-key": l.lane, "data-lane": l.lane },
      h("div", { class: "lane-name" }, h("strong", {}, l.lane),
        l.paused && h("span", { class: "tag bad" }, "paused"),
        l.yielding && h("span", { class: "tag warn" }, "yields"),
        l.draining && h("span", { class: "tag warn" }, "draining")),
      chart(l.lane, past(pool.pool, l.lane, now)),
      h("dl", {},
        fact("could run", count(l.depth), "depth"), fact("oldest", l.oldest_age === undefined ? "–" : span(l.oldest_age)),
        fact("in line", count(l.waiting), "waiting"), fact("permits", count(l.active), "active"))))),
    h("p", { class: "legend" }, h("span", { class: "key depth" }, "could run, were the pool free"), h("span", { class: "key active" }, "permits")));
}

const fact = (name, value, field) => h("div", {}, h("dt", {}, name), h("dd", { "data-field": field }, value));

function held(pool, seen, act) {
  const rows = seen.held.flatMap((t) => t.held.map((row) => ({ ...row, tenant: t.tenant })));
  const total = heldCount(pool);
  return part("held", "Who is held, and why", total ? `${count(total)} tenants and lanes; those with the most first` : "",
    h("div", { class: "reasons" }, (pool.held ?? []).map((r) => h("button", {
      type: "button", class: "chip", "data-key": r.reason, "aria-pressed": String(seen.reason === r.reason), title: because(r.reason),
      onclick: () => act.onlyReason(r.reason),
    }, reason(r.reason), " ", h("b", {}, count(r.tenants))))),
    table("Held tenants", [{ name: "tenant" }, { name: "lane" }, { name: "reason" }, { name: "due", class: "n" }, { name: "in line", class: "n" }, { name: "oldest", class: "n" }, { name: "free", class: "n" }],
      rows.slice(0, 100).map((r) => ({
        key: r.tenant + " " + r.lane,
        cells: [tenantButton(r.tenant, act, [r.lane]), r.lane, h("span", { title: because(r.reason) }, reason(r.reason)), count(r.due), count(r.waiting),
          seconds(r.oldest_age) ? span(r.oldest_age) : "–", freedBy(r)],
      })), "Nobody is held back."));
}

const tenantButton = (name, act, lanes) => h("button", { type: "button", class: "link", "data-tenant": name, title: "Why? Every limit of " + name, onclick: () => act.tenant(name, lanes) }, name);

// shares compares what tenants hold with what their weights give them.
function shares(seen, act) {
  const all = seen.tenants?.tenants ?? [];
  const busy = all.filter((t) => number(t.active) > 0);
  const active = busy.reduce((n, t) => n + number(t.active), 0);
  const weights = busy.reduce((n, t) => n + number(t.share.weight), 0);
  const most = Math.max(0.01, ...busy.map((t) => Math.max(number(t.active) / active, number(t.share.weight) / weights)));
  const find = seen.find.toLowerCase();
  const rows = all.filter((t) => !find || t.share.id.toLowerCase().includes(find))
    .sort((a, b) => number(b.active) - number(a.active) || (a.share.id < b.share.id ? -1 : 1)).slice(0, 25);
  const percent = (v) => Math.round(v * 100) + " %";
  return part("shares", "Tenants’ shares", seen.tenants?.next_page_token ? "of the first 1,000 by id" : "of the permits, against their weights",
    h("div", { class: "find" }, h("label", { for: "find" }, "Find a tenant"),
      h("input", { id: "find", type: "search", autocomplete: "off", spellcheck: "false", oninput: (e) => act.find(e.target.value) }),
      seen.find && h("button", { type: "button", class: "chip", onclick: () => act.tenant(seen.find, []) }, "Show “" + seen.find + "”")),
    table("Shares", [{ name: "tenant" }, { name: "permits", class: "n" }, { name: "share, and by weight", class: "wide" }, { name: "weight", class: "n" }],
      rows.map((t) => {
        const share = active ? number(t.active) / active : 0, fair = number(t.active) && weights ? number(t.share.weight) / weights : undefined;
        return {
          key: t.share.id,
          cells: [[tenantButton(t.share.id, act, []), t.paused && h("span", { class: "tag bad" }, "paused")],
            h("span", { class: number(t.debt) ? "bad" : "" }, count(t.active), t.share.max_active !== undefined && h("small", {}, " of " + count(t.share.max_active))),
            h("span", { class: "with-bar" }, bar(share, most, `${percent(share)} of the permits${fair === undefined ? "" : ", " + percent(fair) + " by weight"}`, fair), h("small", {}, percent(share))),
            count(t.share.weight)],
        };
      }), seen.find ? "None of those that are known." : "No tenant is known yet."));
}

function buckets(pool) {
  return part("buckets", "Buckets", "tokens left",
    (pool.buckets ?? []).length === 0 ? h("p", { class: "none" }, "The pool has no buckets of its own.") :
      h("ul", { class: "gauges" }, pool.buckets.map((b) => h("li", { "data-key": b.bucket },
        h("span", {}, b.bucket, b.paused && h("span", { class: "tag bad" }, b.paused_for === undefined ? "paused" : "paused for " + span(b.paused_for))),
        h("span", { class: "n" }, count(b.level), h("small", {}, " of " + count(b.capacity))),
        bar(number(b.level), number(b.capacity), `${count(b.level)} of ${count(b.capacity)} tokens`, undefined, b.paused || number(b.level) <= 0 ? "bad" : "")))));
}

function permits(seen) {
  const ages = seen.permits?.ages ?? [], all = ages.reduce((n, a) => n + number(a.permits), 0);
  const names = ages.map((a, i) => a.under !== undefined ? "under " + span(a.under).replace(" 0 s", "").replace(" 0 min", "") : i ? "older" : "any age");
  return part("permits", "Permits by age", "and the oldest of them",
    h("ul", { class: "gauges ages" }, ages.map((a, i) => h("li", { "data-key": names[i] }, h("span", {}, names[i]), h("span", { class: "n" }, count(a.permits)),
      bar(number(a.permits), all, `${count(a.permits)} of ${count(all)}`)))),
    table("The oldest permits", [{ name: "tenant" }, { name: "lane" }, { name: "held for", class: "n" }, { name: "expires in", class: "n" }, { name: "worker" }],
      (seen.permits?.permits ?? []).map((p) => ({
        key: p.fence, cells: [p.tenant, p.lane, span(p.held_for), span(p.expires_in), p.worker_id || p.entry || p.lock_key || "–"],
      })), "No permit is out."));
}

function limits(pool) {
  return part("limits", "Limits", "those that are nearest to full",
    h("ul", { class: "gauges" }, fullest(pool.limits ?? []).map((l) => h("li", { "data-key": l.limit }, h("span", {}, l.limit),
      h("span", { class: "n" }, count(l.used), h("small", {}, " of " + count(l.capacity))),
      bar(number(l.used), number(l.capacity), `${count(l.used)} of ${count(l.capacity)}`, undefined, number(l.used) > number(l.capacity) * 0.8 ? "bad" : "")))));
}

// fullest are the limits that are nearest to their end.
const fullest = (limits) => limits.filter((l) => number(l.capacity) > 0)
  .sort((a, b) => number(b.used) / number(b.capacity) - number(a.used) / number(a.capacity)).slice(0, 6);

function members(seen) {
  const all = seen.members?.members ?? [];
  return part("members", "Members", all.length > 1 ? `${all.filter((m) => m.reachable).length} of ${all.length} answer` : "a node that is alone",
    table("Members", [{ name: "node" }, { name: "role" }, { name: "heard of", class: "n" }, { name: "applied", class: "n" }],
      all.map((m) => ({
        key: m.node_id, class: m.reachable ? "" : "gone",
        cells: [m.node_id, m.leader ? h("span", { class: "tag good" }, "leader") : m.voter ? "voter" : "learner",
          m.reachable ? h("span", { class: "good" }, "answers") : m.last_contact === undefined ? h("span", { class: "bad" }, "never") : h("span", { class: "bad" }, span(m.last_contact) + " ago"),
          count(m.applied_index)],
      })), ""));
}
