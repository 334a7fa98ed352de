// What the lanes looked like since the page was opened, up to five minutes back.

const longest = 300;
const most = 100; // pools that are remembered
const pools = new Map();

// remember keeps one picture of all pools.
export function remember(health, at) {
  for (const p of health.pools?.slice(0, most) ?? []) {
    const past = pools.get(p.pool) ?? [];
    past.push({ at, lanes: Object.fromEntries((p.lanes ?? []).map((l) => [l.lane, { depth: Number(l.depth ?? 0), active: Number(l.active ?? 0) }])) });
    while (past.length > longest || past[0].at < at - longest * 1000) past.shift();
    pools.set(p.pool, past);
  }
  for (const name of pools.keys()) if (!health.pools?.some((p) => p.pool === name)) pools.delete(name);
}

// past returns one lane's numbers, the oldest first, with how many seconds ago.
export function past(pool, lane, now) {
  return (pools.get(pool) ?? []).filter((s) => s.lanes[lane]).map((s) => ({ ago: (now - s.at) / 1000, ...s.lanes[lane] }));
}
