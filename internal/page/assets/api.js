// What the page asks of its node: reads of the API as JSON.

const key = "admit-token";
let token = sessionStorage.getItem(key) ?? "";
// stale says that reads show what the node has, as long as no node leads.
let stale = false;

export function setToken(text) {
  token = text.trim();
  sessionStorage.setItem(key, token);
}

// Failure is an answer that is none.
export class Failure extends Error {
  constructor(status, message, reason) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

async function post(method, request) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  let response;
  try {
    response = await fetch("api/admit.v1." + method, {
      method: "POST", headers, body: JSON.stringify(request), signal: AbortSignal.timeout(8000), cache: "no-store",
    });
  } catch {
    throw new Failure(0, "this node does not answer");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const reason = answer.details?.find((d) => d.reason)?.reason;
  throw new Failure(response.status, answer.message ?? response.statusText, reason);
}

// read asks for what is true now, or while no node leads for what this one has.
export async function read(method, request = {}) {
  if (stale) return post(method, { ...request, stale: true });
  return post(method, request);
}

// readFirst is read, and finds out whether a node leads.
export async function readFirst(method, request = {}) {
  try {
    stale = false;
    return await post(method, request);
  } catch (failure) {
    if (failure.status !== 503) throw failure;
    stale = true;
    return post(method, { ...request, stale: true });
  }
}

export const isStale = () => stale;

// laneHistory asks for what the node remembers, without anybody else.
export const laneHistory = (pool) => post("StatusService/LaneHistory", { pool });

// members asks the node, who has no older answer to that.
export const members = () => post("ClusterService/ListMembers", {});
