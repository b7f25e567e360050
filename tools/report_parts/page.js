// The charts of report's page, drawn from the numbers in #curve-data (curve_data.h): x axis, smoothing, log scale, runs
// on and off, values under the pointer. Texts of histories go into the page as text nodes only.
"use strict";
(function () {
  const WIDTH = 360, HEIGHT = 210, LEFT = 58, RIGHT = 346, TOP = 10, BOTTOM = 176, COLOURS = 6;
  const UNITS = {
    s: [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]],
    bytes: [[2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"], [1, " B"]],
    elapsed: [[3600, " h"], [60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"]],
    count: [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]]
  };

  function scaleOf(largest, unit) {
    const list = Object.hasOwn(UNITS, unit) ? UNITS[unit] : (largest >= 1e5 ? UNITS.count : [[1, ""]]);
    return list.find(([size]) => largest >= size) || list[list.length - 1];
  }
  function shown(value, unit) {
    const [size, suffix] = scaleOf(Math.abs(value), unit);
    return String(Number((value / size).toPrecision(4))) + suffix;
  }
  // A value of the file: whole numbers, such as counts, with all digits.
  function exact(value, unit) {
    return Object.hasOwn(UNITS, unit) || !Number.isSafeInteger(value) ? shown(value, unit) : value.toLocaleString("en");
  }
  function drawn(tag, attributes, parent) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (parent) parent.appendChild(element);
    return element;
  }

  // Exponential moving average without the bias of its start; a gap stays one.
  function smoothed(values, weight) {
    if (weight === 0) return values;
    let sum = 0, weights = 0;
    return values.map(function (y) {
      if (!Number.isFinite(y)) return y;
      sum = weight * sum + (1 - weight) * y;
      weights = weight * weights + (1 - weight);
      return sum / weights;
    });
  }

  // The percentiles 1 to 99 of each curve with a margin, or all where that suffices or there are few values.
  function rangeOf(curves, log) {
    let low = Infinity, high = -Infinity, least = Infinity, most = -Infinity;
    const place = log ? Math.log10 : function (y) { return y; };
    curves.forEach(function (curve) {
      const all = curve.low.concat(curve.high, curve.raw).map(place).filter(Number.isFinite).sort((a, b) => a - b);
      if (all.length === 0) return;
      const aside = curve.raw.filter(Number.isFinite).length < 20 ? 0 : 0.01 * (all.length - 1);
      low = Math.min(low, all[Math.ceil(aside)]);
      high = Math.max(high, all[all.length - 1 - Math.ceil(aside)]);
      least = Math.min(least, all[0]);
      most = Math.max(most, all[all.length - 1]);
    });
    if (low > high) return null;
    const margin = 0.3 * (high - low);
    low = Math.max(least, low - margin);
    high = Math.min(most, high + margin);
    const rim = high > low ? 0.03 * (high - low) : Math.abs(high) / 10 || 1;
    return [low - rim, high + rim];
  }

  // With the digits that a distance of 10^place needs; very large and very small numbers with an exponent.
  function labelOf(value, place, exponent) {
    if (!exponent) return value.toFixed(Math.max(0, -place));
    const digits = Math.floor(Math.log10(Math.abs(value)) + 1e-9) - place;
    return value === 0 ? "0" : value.toExponential(Math.max(0, digits));
  }

  // [position, text] at multiples of 1, 2 or 5; on a log axis positions are exponents.
  function ticksOf(low, high, most, unit, log) {
    if (log && high - low > 1) {
      const stride = Math.ceil((high - low) / most), ticks = [];
      for (let e = Math.ceil(low / stride) * stride; e <= high; e += stride) ticks.push([e, shown(10 ** e, unit)]);
      return ticks;
    }
    if (log) return ticksOf(10 ** low, 10 ** high, most, unit, false).map(([y, text]) => [Math.log10(y), text]);
    const [size, suffix] = scaleOf(Math.max(Math.abs(low), Math.abs(high)), unit);
    const largest = Math.max(Math.abs(low), Math.abs(high)) / size;
    // Below 1e-12 of them, neighbouring numbers are too far apart for steps.
    const rough = Math.max((high - low) / size / most, 1e-12 * largest), power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
    const place = Math.floor(Math.log10(step) + 1e-9), ticks = [];
    for (let i = Math.ceil(low / size / step); i * step * size <= high; ++i) {
      ticks.push([i * step * size, labelOf(i * step, place, largest >= 1e6 || largest < 1e-3) + suffix]);
    }
    return ticks;
  }

  // Curves of a metric in the runs that are switched on, along the chosen axis.
  function curvesOf(data, metric, choice) {
    const curves = [];
    data.runs.forEach(function (run, index) {
      const values = run.curves[metric], x = run.x[choice.x];
      if (!values || !x || !choice.runs[index]) return;
      const y = values.y.map((v) => v === null ? NaN : Number(v));
      const numbers = (list) => list ? list.map((v) => v === null ? NaN : Number(v)) : [];
      curves.push({ run: run, colour: "c" + index % COLOURS, x: x, raw: y, y: smoothed(y, choice.smoothing),
                    low: numbers(values.low), high: numbers(values.high), sparse: values.sparse, note: values.note });
    });
    return curves;
  }

  function Chart(figure, data, choice) {
    const metric = data.metrics[Number(figure.dataset.metric)];
    const axis = data.axes.find((a) => a.name === choice.x);
    const curves = curvesOf(data, Number(figure.dataset.metric), choice);
    const plot = figure.querySelector(".plot"), caption = figure.querySelector("figcaption");
    const readout = figure.querySelector(".readout");
    const svg = drawn("svg", { class: "chart", viewBox: "0 0 " + WIDTH + " " + HEIGHT, role: "img",
                               "aria-label": plot.dataset.label });
    plot.replaceChildren(svg);
    caption.textContent = readout.textContent = "";
    figure.classList.remove("reading");
    const y = rangeOf(curves, choice.log);
    let x0 = Infinity, x1 = -Infinity;
    curves.forEach((c) => c.x.forEach(function (x, i) {
      if (!Number.isNaN(c.y[i])) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); }
    }));
    if (y === null || x0 > x1) {
      caption.textContent = choice.log && curves.length ? "No value above 0." : "No values.";
      return;
    }
    if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
    const atX = (x) => LEFT + (x - x0) / (x1 - x0) * (RIGHT - LEFT);
    const atY = (v) => BOTTOM - ((choice.log ? Math.log10(v) : v) - y[0]) / (y[1] - y[0]) * (BOTTOM - TOP);
    const onPaper = (v) => Math.min(10 * HEIGHT, Math.max(-10 * HEIGHT, atY(v))).toFixed(2);
    frame();
    const clip = "clip" + figure.dataset.metric;
    drawn("rect", { x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP },
          drawn("clipPath", { id: clip }, drawn("defs", {}, svg)));
    const inside = drawn("g", { "clip-path": "url(#" + clip + ")" }, svg);
    let outside = 0, broken = 0;
    curves.forEach(curve);
    const notes = curves.filter((c) => c.note).map((c) => (data.runs.length > 1 ? c.run.label + ": " : "") + c.note);
    if (outside) notes.push(outside + (outside > 1 ? " points" : " point") + " beyond the axis, at its edge.");
    if (broken) notes.push(broken + (broken > 1 ? " points" : " point") + " infinite or, on the log scale, not above 0.");
    caption.textContent = notes.join(" ");
    const cursor = drawn("line", { class: "cursor", y1: TOP, y2: BOTTOM }, svg);
    svg.addEventListener("pointermove", read);
    svg.addEventListener("pointerdown", read);
    svg.addEventListener("pointerleave", function () {
      readout.textContent = "";
      figure.classList.remove("reading");
      cursor.style.visibility = "hidden";
    });

    function frame() {
      const ticks = drawn("g", { class: "ticks" }, svg);
      ticksOf(y[0], y[1], 5, metric.units, choice.log).forEach(function ([place, text]) {
        const at = BOTTOM - (place - y[0]) / (y[1] - y[0]) * (BOTTOM - TOP);
        drawn("line", { x1: LEFT, x2: RIGHT, y1: at, y2: at }, ticks);
        drawn("text", { x: LEFT - 5, y: at + 4, "text-anchor": "end" }, ticks).textContent = text;
      });
      ticksOf(x0, x1, 5, axis.units, false).forEach(function ([place, text]) {
        drawn("line", { x1: atX(place), x2: atX(place), y1: TOP, y2: BOTTOM }, ticks);
        drawn("text", { x: atX(place), y: BOTTOM + 15, "text-anchor": "middle" }, ticks).textContent = text;
      });
      drawn("rect", { class: "frame", x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP }, svg);
      drawn("text", { class: "axis-name", x: (LEFT + RIGHT) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, svg)
        .textContent = axis.label;
    }

    function line(c, values, kind) {
      let path = "", pen = "M";
      const lonely = [];
      values.forEach(function (v, i) {
        if (Number.isNaN(v) && c.sparse) return;
        if (!Number.isFinite(atY(v))) { pen = "M"; return; }
        if (pen === "M" && !Number.isFinite(atY(values[i + 1])) && !c.sparse) lonely.push(i);
        path += pen + atX(c.x[i]).toFixed(2) + "," + onPaper(v) + " ";
        pen = "L";
      });
      const group = drawn("g", { class: kind + " " + c.colour }, inside);
      group.dataset.name = c.run.label;
      if (path) drawn("path", { d: path }, group);
      const dots = drawn("g", { class: "dots " + c.colour }, inside);
      lonely.forEach((i) => drawn("circle", { cx: atX(c.x[i]), cy: onPaper(values[i]), r: 1.6 }, dots));
    }

    function curve(c) {
      if (c.low.length) {
        const top = [], floor = [];
        c.low.forEach(function (low, i) {
          if (!Number.isFinite(atY(c.y[i]))) return;
          const at = atX(c.x[i]).toFixed(2) + ",";
          top.push(at + onPaper(c.high[i]));
          floor.unshift(at + (choice.log && low <= 0 ? BOTTOM : onPaper(low)));
        });
        drawn("polygon", { points: top.concat(floor).join(" ") }, drawn("g", { class: "band " + c.colour }, inside));
      }
      if (choice.smoothing > 0) line(c, c.raw, "series faint");
      line(c, c.y, "series");
      const marks = drawn("g", { class: "marks " + c.colour }, svg);
      c.raw.forEach(function (v, i) {
        const extremes = c.low.length ? [c.low[i], c.high[i]] : [v];
        extremes.forEach(function (e) {
          if (Number.isNaN(e)) return;
          const at = atY(e);
          if (!Number.isFinite(at)) ++broken;
          const above = e === Infinity || at < TOP, below = !above && !(at <= BOTTOM);
          if (!above && !below) return;
          if (Number.isFinite(at)) ++outside;
          const x = atX(c.x[i]), edge = above ? TOP : BOTTOM, tip = above ? edge + 5 : edge - 5;
          drawn("path", { d: "M" + x + "," + edge + " l3,0 L" + x + "," + tip + " L" + (x - 3) + "," + edge + "Z" }, marks);
        });
      });
    }

    function nearest(c, x) {
      let best = -1;
      c.x.forEach(function (at, i) {
        if (!Number.isNaN(c.y[i]) && (best < 0 || Math.abs(atX(at) - x) < Math.abs(atX(c.x[best]) - x))) best = i;
      });
      const past = x < atX(c.x[0]) || x > atX(c.x[c.x.length - 1]);
      return past && best >= 0 && Math.abs(atX(c.x[best]) - x) > 12 ? -1 : best;
    }
    function entry(text, colour, title) {
      const span = document.createElement("span");
      if (colour) span.appendChild(document.createElement("i")).className = "dot " + colour;
      span.appendChild(document.createTextNode(text));
      if (title) span.title = title;
      readout.appendChild(span);
    }
    function read(event) {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * WIDTH;
      readout.textContent = "";
      let place = null;
      curves.forEach(function (c) {
        const i = nearest(c, x);
        if (i < 0) return;
        if (place === null) {
          place = atX(c.x[i]);
          entry((c.run.per_point > 1 ? "around " : "") + axis.label + " " +
                (axis.units === "elapsed" ? shown(c.x[i], "elapsed") : c.x[i].toLocaleString("en")));
        }
        const raw = (c.run.per_point > 1 ? shown : exact)(c.raw[i], metric.units);
        entry(choice.smoothing > 0 ? shown(c.y[i], metric.units) + " (" + raw + ")" : raw, c.colour, c.run.label);
      });
      figure.classList.toggle("reading", place !== null);
      cursor.style.visibility = place === null ? "hidden" : "visible";
      if (place === null) return;
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
    }
  }

  function draw() {
    const source = document.getElementById("curve-data"), form = document.querySelector(".controls");
    if (!source || !form) return;
    const data = JSON.parse(source.textContent), weight = Number(form.elements.smoothing.value);
    form.hidden = false;
    for (const option of form.elements.x.options) option.hidden = !data.axes.some((a) => a.name === option.value);
    form.querySelector("output").textContent = weight.toFixed(2);
    const boxes = form.querySelectorAll(".runs input");
    const choice = { x: form.elements.x.value, log: form.elements.log.checked, smoothing: weight,
                     runs: data.runs.map((_, i) => !boxes.length || boxes[i].checked) };
    document.querySelectorAll("figure[data-metric]").forEach((figure) => Chart(figure, data, choice));
  }

  // report --follow: the page asks for a newer one of itself and takes it over, but for what the reader has set.
  const PAUSE = 1000;
  let version = null;
  function take(page) {
    const open = Array.from(document.querySelectorAll("details[open] > summary"), (e) => e.textContent);
    const old = document.querySelector(".controls"), fresh = page.querySelector(".controls");
    if (old && fresh && old.elements.length === fresh.elements.length) fresh.replaceWith(old);
    for (const part of ["header", "main"]) document.querySelector(part).replaceWith(page.querySelector(part));
    document.querySelectorAll("summary").forEach((e) => { e.parentNode.open = open.includes(e.textContent); });
    document.title = page.title;
    draw();
  }
  async function follow() {
    const footer = document.querySelector("footer");
    try {
      const answer = await fetch(location.pathname), tag = answer.headers.get("ETag");
      if (!answer.ok) throw new Error(answer.statusText);
      // Not under a reader's pointer.
      if (tag !== version && !document.querySelector(".reading")) {
        take(new DOMParser().parseFromString(await answer.text(), "text/html"));
        version = tag;
      }
      footer.textContent = "Follows the runs.";
    } catch (error) {
      footer.textContent = "report has ended; this is the state before.";
    }
    setTimeout(follow, PAUSE);
  }

  document.addEventListener("input", function (event) { if (event.target.closest(".controls")) draw(); });
  document.addEventListener("submit", (event) => event.preventDefault());
  draw();
  if ("follows" in document.documentElement.dataset) follow();
})();
