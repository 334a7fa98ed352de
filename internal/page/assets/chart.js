import { h } from "./dom.js";
import { count } from "./words.js";

const wide = 300, high = 44;

// chart draws a lane over the last fifteen minutes: what waits as an area, permits as a
// line, each against its own most.
export function chart(lane, past) {
  const most = (of) => Math.max(1, ...past.map((s) => s[of]));
  const depth = most("depth"), active = most("active");
  const whole = Math.max(60, past[0]?.ago ?? 0); // seconds that are drawn
  const x = (s) => (wide - s.ago / whole * wide).toFixed(1);
  const at = (s, of, top) => `${x(s)},${(high - 2 - s[of] / top * (high - 6)).toFixed(1)}`;
  const line = (of, top) => "M" + past.map((s) => at(s, of, top)).join("L");
  const last = past[past.length - 1];
  const told = last ? `${lane}: ${count(last.depth)} wait now, ${count(Math.max(...past.map((s) => s.depth)))} at most; ` +
    `${count(last.active)} permits now, ${count(Math.max(...past.map((s) => s.active)))} at most` : lane;
  return h("svg", { class: "chart", role: "img", "aria-label": told, "data-goes-back": Math.round(past[0]?.ago ?? 0), viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none" },
    h("title", {}, told),
    h("line", { class: "base", x1: 0, x2: wide, y1: high - 2, y2: high - 2 }),
    past.length > 1 && [
      h("path", { class: "area", d: `${line("depth", depth)}L${x(last)},${high - 2}L${x(past[0])},${high - 2}Z` }),
      h("path", { class: "depth", d: line("depth", depth) }),
      h("path", { class: "active", d: line("active", active) }),
    ]);
}
