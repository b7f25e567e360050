#include "tools/report_parts/page_style.h"

namespace plait::report {

absl::string_view PageStyle() {
  return R"css(
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --text: #17202b; --soft: #53606e; --line: #d8dee5; --grid: #e6eaef;
  --link: #0b5cad; --head: #eef1f5;
  --c0: #0b6bcb; --c1: #c8500a; --c2: #0b7d6c; --c3: #8536c6; --c4: #97690a; --c5: #c2246b;
  --forward: #1f6fc2; --backward: #6a49c8; --optimizer: #0e7561; --messages: #b04c08; --waiting: #a11c3a; --other: #5f6973;
  --bar-text: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f141a; --card: #171e26; --text: #e4e9ef; --soft: #9dabba; --line: #2d3843; --grid: #252f39;
    --link: #7cbcff; --head: #1d2630;
    --c0: #64b0ff; --c1: #ff9b5c; --c2: #4ccfb5; --c3: #c59bff; --c4: #e8bd4a; --c5: #ff86b8;
    --forward: #6db3f8; --backward: #b39dfa; --optimizer: #52cdb1; --messages: #f5a063; --waiting: #ff8fa3; --other: #93a0ae;
    --bar-text: #0f141a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", "Liberation Sans", sans-serif;
}
main, header { max-width: 1360px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 20px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 30px 0 10px; }
h3 { font-size: 0.95rem; margin: 0; overflow-wrap: anywhere; }
p { margin: 0; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; margin: 12px 0 0; padding: 0; }
nav a { display: inline-block; padding: 4px 0; }
.lead, .about, figcaption, .foot, .lane-name { color: var(--soft); }
.about, figcaption, .foot, .readout, .legend { font-size: 0.82rem; }
.line { display: grid; }
.line > * { grid-area: 1 / 1; min-height: 1.5em; overflow-wrap: anywhere; }
.reading .about { visibility: hidden; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; margin: 0; }
.tiles { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 160px), 1fr)); margin-top: 16px; }
.tile h3 { color: var(--soft); font-weight: 500; font-size: 0.82rem; }
.tile p { overflow-wrap: anywhere; }
.tile b { font-size: 1.3rem; font-weight: 650; font-variant-numeric: tabular-nums; margin-right: 6px; }
.tile small { color: var(--soft); font-size: 0.82rem; display: inline-block; }
.charts { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr)); }
.charts > * { min-width: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 6px 0 10px; overflow-wrap: anywhere; }
.swatch, .dot { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; vertical-align: -0.5px; }
.dot.c0, .swatch.c0 { background: var(--c0); } .dot.c1, .swatch.c1 { background: var(--c1); }
.dot.c2, .swatch.c2 { background: var(--c2); } .dot.c3, .swatch.c3 { background: var(--c3); }
.dot.c4, .swatch.c4 { background: var(--c4); } .dot.c5, .swatch.c5 { background: var(--c5); }
svg.chart { display: block; width: 100%; height: auto; touch-action: pan-y; }
svg text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 11px; font-variant-numeric: tabular-nums; }
.cursor { stroke: var(--soft); stroke-width: 1; visibility: hidden; }
.readout { font-variant-numeric: tabular-nums; }
.readout span { margin-right: 12px; white-space: nowrap; }
figcaption span { display: block; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.scroll:focus-visible, a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid); }
tbody tr:last-child > * { border-bottom: 0; }
thead th, thead td { background: var(--head); color: var(--soft); font-weight: 600; }
tbody th, thead > tr > :first-child { position: sticky; left: 0; }
tbody th { background: var(--card); }
th.text, td.text { text-align: left; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 180px; max-width: 700px; }
tbody th { font-weight: 600; }
.foot { margin-top: 6px; }
.notes { margin: 12px 0 0; padding-left: 20px; overflow-wrap: anywhere; }
details { margin-top: 12px; }
summary { cursor: pointer; padding: 4px 0; }
.timeline .rank { margin-top: 10px; }
.rank-name, .lane-name { font-size: 0.82rem; overflow-wrap: anywhere; }
.lane { position: relative; background: var(--head); border-radius: 3px; margin-top: 2px; overflow: hidden; }
.bar {
  position: absolute; height: 17px; min-width: 1px; padding: 0; overflow: hidden; white-space: nowrap;
  font-size: 11px; line-height: 17px; color: var(--bar-text); text-align: center; border-radius: 2px;
  box-shadow: inset 0 0 0 0.5px var(--card);
}
.forward { background: var(--forward); } .backward { background: var(--backward); }
.optimizer { background: var(--optimizer); } .messages { background: var(--messages); }
.waiting { background: var(--waiting); } .other { background: var(--other); }
.time-axis { position: relative; height: 22px; margin-top: 4px; font-size: 11px; color: var(--soft); border-top: 1px solid var(--line); }
.time-axis span { position: absolute; white-space: nowrap; padding-left: 3px; border-left: 1px solid var(--line); }
.time-axis span.late { transform: translateX(-100%); border-left: 0; border-right: 1px solid var(--line); padding: 0 3px 0 0; }
footer { max-width: 1360px; margin: 24px auto 32px; padding: 0 16px; color: var(--soft); font-size: 0.82rem; }
@media print { body { background: #ffffff; } .scroll { overflow: visible; } }
)css";
}

absl::string_view PageScript() {
  return R"js(
"use strict";
(function () {
  var units = {
    s: [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]],
    bytes: [[1099511627776, " TiB"], [1073741824, " GiB"], [1048576, " MiB"], [1024, " KiB"], [1, " B"]]
  };
  function shown(value, unit) {
    var list = units[unit] || [[1, ""]];
    for (var i = 0; i < list.length; ++i) {
      if (Math.abs(value) >= list[i][0] || i + 1 === list.length) {
        return String(Number((value / list[i][0]).toPrecision(4))) + list[i][1];
      }
    }
  }
  function points(series) {
    var all = [];
    series.querySelectorAll("path").forEach(function (line) {
      line.getAttribute("d").match(/[-\d.]+,[-\d.]+/g).forEach(function (pair) {
        var at = pair.split(",");
        all.push([Number(at[0]), Number(at[1])]);
      });
    });
    return all;
  }
  function nearest(all, x) {
    var best = null;
    all.forEach(function (point) {
      if (best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
    });
    return best;
  }
  document.querySelectorAll("svg.chart").forEach(function (svg) {
    var data = svg.dataset, left = Number(data.left), width = Number(data.width);
    var top = Number(data.top), height = Number(data.height);
    var x0 = Number(data.x0), x1 = Number(data.x1), y0 = Number(data.y0), y1 = Number(data.y1);
    var figure = svg.parentNode, readout = figure.querySelector(".readout"), cursor = svg.querySelector(".cursor"), curves = null;
    function show(event) {
      if (curves === null) {
        curves = Array.prototype.map.call(svg.querySelectorAll(".series"), function (series) {
          return { name: series.dataset.name, part: Number(series.dataset.valuesPerPoint), points: points(series),
                   colour: series.getAttribute("class").split(" ")[1] };
        });
      }
      var box = svg.getBoundingClientRect();
      var x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      readout.textContent = "";
      figure.classList.add("reading");
      var place = null;
      curves.forEach(function (curve) {
        var point = nearest(curve.points, x);
        if (point === null) return;
        if (place === null) {
          place = point[0];
          var draw = document.createElement("span");
          var number = Math.round(x0 + (place - left) / width * (x1 - x0));
          draw.textContent = (curve.part > 1 ? "around draw " : "draw ") + number.toLocaleString("en");
          readout.appendChild(draw);
        }
        var entry = document.createElement("span"), dot = document.createElement("i");
        dot.className = "dot " + curve.colour;
        entry.appendChild(dot);
        entry.appendChild(document.createTextNode(shown(y0 + (1 - (point[1] - top) / height) * (y1 - y0), data.unit)));
        entry.title = curve.name;
        readout.appendChild(entry);
      });
      if (place !== null) {
        cursor.setAttribute("x1", place);
        cursor.setAttribute("x2", place);
        cursor.style.visibility = "visible";
      }
    }
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", function () {
      readout.textContent = "";
      figure.classList.remove("reading");
      cursor.style.visibility = "hidden";
    });
  });
})();
)js";
}

}  // namespace plait::report
