// How the lanes stood in the last fifteen minutes, as far as the node remembers them,
// and since the page was opened.

const longest = 900; // seconds
const step = 5; // seconds between two looks that are kept
const most = 100; // pools that are remembered
const pools = new Map();

const numbers = (lanes) => Object.fromEntries((lanes ?? []).map((l) => [l.lane, { depth: Number(l.depth ?? 0), active: Number(l.active ?? 0) }]));

// remember keeps one picture of all pools. Of the looks within one step the last is kept.
export function remember(health, at) {
  for (const p of health.pools?.slice(0, most) ?? []) {
    const past = pools.get(p.pool) ?? [];
    if (past.length > 1 && at - past[past.length - 2].at < step * 1000) past.pop();
    past.push({ at, lanes: numbers(p.lanes) });
    while (past[0].at < at - longest * 1000) past.shift();
    pools.set(p.pool, past);
  }
  for (const name of pools.keys()) if (!health.pools?.some((p) => p.pool === name)) pools.delete(name);
}

// recall puts what the node remembers of a pool before what the page has seen itself.
export function recall(pool, samples, now) {
  const seen = pools.get(pool) ?? [];
  const before = samples.map((s) => ({ at: now - parseFloat(s.ago) * 1000, lanes: numbers(s.lanes) }));
  pools.set(pool, [...before.filter((s) => seen.length === 0 || s.at < seen[0].at), ...seen]);
}

// past returns one lane's numbers, the oldest first, with how many seconds ago.
export function past(pool, lane, now) {
  return (pools.get(pool) ?? []).filter((s) => s.lanes[lane]).map((s) => ({ ago: (now - s.at) / 1000, ...s.lanes[lane] }));
}
