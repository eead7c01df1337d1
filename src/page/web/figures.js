// Figures as people read them.

import { h, svg } from "./dom.js";

export function bytes(count) {
  if (!(count >= 0)) return "\u2013";
  for (const [size, name] of [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ])
    if (count >= size) return `${(count / size).toPrecision(3)} ${name}`;
  return `${count} B`;
}

export function shortNumber(count) {
  for (const [size, name] of [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ])
    if (count >= size) return `${(count / size).toPrecision(3).replace(/\.?0+$/, "")} ${name}`;
  return String(count);
}

export function rate(value) {
  if (!(value >= 0)) return "\u2013";
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export function duration(s) {
  const [days, hours, minutes] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  return days > 0
    ? `${days} d ${hours} h`
    : hours > 0
      ? `${hours} h ${minutes} min`
      : minutes > 0
        ? `${minutes} min`
        : `${s} s`;
}

// A line through `values` (null: a gap), of width 100 and height 28, from 0 to `top` or to the largest.
export function sparkline(series, top = 0) {
  const highest = Math.max(top, ...series.flat().filter((value) => value !== null)) || 1;
  const image = svg("svg", {
    viewBox: "0 0 100 28",
    preserveAspectRatio: "none",
    class: "spark",
    "aria-hidden": "true",
  });
  series.forEach((values, number) => {
    const step = 100 / Math.max(values.length - 1, 1);
    let path = "",
      pen = "M";
    values.forEach((value, i) => {
      if (value === null) {
        pen = "M";
        return;
      }
      path += `${pen}${(i * step).toFixed(2)} ${(27 - (25 * value) / highest).toFixed(2)}`;
      pen = "L";
    });
    image.append(svg("path", { d: path || "M0 27", class: `line-${number}` }));
  });
  return image;
}

// Parts of a whole, as one bar and its legend: [{name, value}].
export function partsBar(label, parts, total) {
  const bar = h("div", {
    class: "parts",
    role: "img",
    "aria-label": `${label}: ${parts.map(({ name, value }) => `${name} ${bytes(value)}`).join(", ")}`,
  });
  parts.forEach(({ value }, i) => {
    const part = h("span", { class: `part-${i}` });
    part.style.flexGrow = String(Math.max(value, 0) / (total || 1));
    bar.append(part);
  });
  return h(
    "div",
    null,
    bar,
    h(
      "ul",
      { class: "legend" },
      parts.map(({ name, value }, i) =>
        h("li", null, h("span", { class: `swatch part-${i}` }), `${name} `, h("b", null, bytes(value))),
      ),
    ),
  );
}

// A bar from 0 to 1.
export function meter(label, value) {
  const bar = h("meter", { min: 0, max: 1, "aria-label": label });
  bar.value = value;
  return bar;
}
