// Numbers, times and reasons as people read them.

// number reads what JSON has of a whole number of 64 bits.
export const number = (v) => Number(v ?? 0);

const grouped = new Intl.NumberFormat("en");
export const count = (v) => grouped.format(number(v));

// seconds reads a duration, or null if it is absent.
export const seconds = (v) => v === undefined || v === null ? null : parseFloat(v);

// span writes a duration with as much as is of use.
export function span(v) {
  const s = typeof v === "number" ? v : seconds(v);
  if (s === null) return "";
  if (s < 1) return Math.round(s * 1000) + " ms";
  if (s < 10) return (Math.floor(s * 10) / 10) + " s";
  if (s < 60) return Math.floor(s) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}

// short is a name of an enum without what all of them begin with.
export const short = (name, prefix) => (name ?? "").replace(prefix, "");
export const reason = (name) => short(name, "REASON_");

const why = {
  NEVER_GRANTABLE: "The cost is above what the lane may ever take.",
  DUPLICATE: "The same job runs already, or is done.",
  PAUSED: "Paused by an operator, until resumed.",
  BLOCKED: "A bucket is blocked by the policy.",
  EXHAUSTED: "A one-shot bucket is used up.",
  QUEUE_FULL: "As much waits already as the limit allows.",
  CARDINALITY: "The pool knows as many names as its limit allows.",
  BATCH_ONLY: "The lane takes whole batches only.",
  TENANT_CAP: "The tenant holds as many permits as it may.",
  LANE_CAP: "The tenant holds as many permits of this lane as it may.",
  NODE_CAP: "The node holds its part of the tenant’s permits.",
  LOCK_BUSY: "The lock is held.",
  TENANT_RATE: "The tenant’s own bucket lacks tokens.",
  LANE_YIELD: "The lane yields to those above it.",
  PROVIDER_PAUSED: "The provider said 429, or an operator paused the bucket.",
  POOL_CAP: "The pool’s slots are taken, or kept for higher lanes.",
  POOL_RATE: "The pool’s bucket lacks tokens.",
  RECLAIM_WAIT: "What is free is kept for tenants who are entitled to it.",
  CYCLE_CAP: "The limit of one call was reached.",
  BATCH_FULL: "The call asked for no more.",
};
export const because = (name) => why[reason(name)] ?? "";

// freedBy is what a held tenant waits for, in two words.
export function freedBy(held) {
  if (held.retry_after !== undefined) return span(held.retry_after);
  switch (reason(held.reason)) {
    case "PAUSED": return "when resumed";
    case "LANE_YIELD": return "when others are served";
    case "BLOCKED": case "EXHAUSTED": case "BATCH_ONLY": return "by another policy";
    case "TENANT_RATE": case "POOL_RATE": return "when it is its turn";
  }
  return "on a release";
}

// frees says what lets a limit's demand through, and when.
export function frees(limit, blocks) {
  if (!blocks) return "does not hold it";
  if (limit.retry_after !== undefined) return "time: in " + span(limit.retry_after);
  switch (limit.name) {
    case "paused": case "paused_group": return "an operator who resumes it";
    case "yield": return "the lanes above catching up";
    case "dedupe_key": return number(limit.holders) > 0 ? "the job’s end" : "nothing: the job is done";
  }
  if (number(limit.holders) === 1) return "a release by its holder";
  if (number(limit.holders) > 0) return `a release by one of its ${count(limit.holders)} holders`;
  return "a change of the policy, or others going first";
}
