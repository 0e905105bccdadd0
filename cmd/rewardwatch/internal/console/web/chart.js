"use strict";

// short cuts a text off that is too long, or a name would make the page wider than a phone.
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// fitting names what a chart shows without its signal where that would be cut off: the heading above names it.
const fitting = (text, most) => (text.length > most ? text.replace(/^(mean|onset)( of)? .*/, "$1") : text);

// times names the local times on the axis: days once for each, without their year where there is little room, and else
// hours and minutes, or seconds where they are close.
function times(at, narrow) {
  const dates = at.map((s) => new Date(s * 1000));
  const step = at.length > 1 ? at[1] - at[0] : 60;
  return dates.map((d, i) => {
    const below = i === 0 || day(dates[i - 1]) !== day(d) ? "\n" + day(d).slice(narrow ? 5 : 0) : "";
    return (step >= 86400 ? day(d).slice(5) : clock(d, step < 60)) + below;
  });
}

// moment tells a time as it is here and, unless that is the same, in UTC.
function moment(s) {
  const d = new Date(s * 1000);
  return day(d) + " " + clock(d, true) + (zone(d) === "UTC" ? " UTC" : " (" + d.toISOString().slice(11, 19) + " UTC)");
}

// timeTitle names the time axis: local time and its zone, unless that is UTC.
const timeTitle = (d) => (zone(d) === "UTC" ? "time (UTC)" : `local time (${zone(d)})`);

// number writes a value with as many digits as one reads.
const number = (y) => (y == null ? "–" : Math.abs(y) >= 1e5 || (y !== 0 && Math.abs(y) < 1e-3) ? y.toExponential(2) : String(Number(y.toPrecision(4))));

// ROW is the height of a row of names above a plot, and ROWS is how many there may be.
const ROW = 15, ROWS = 5;

// LABEL is the room for the title of an axis.
const LABEL = 18;

// BAND and SCORE are the widths of the y axis of a signal and of scores.
const BAND = 60, SCORE = 44;

// RIGHT is the room beside a plot, for half a date under its last tick.
const RIGHT = 34;

// NARROW is the width below which a chart has room for fewer and shorter texts, as on a phone.
const NARROW = 450;

// <score-chart> draws its attribute data-course, scores against 1 or a signal against its baseline, and again when that changes. It draws in a shadow, which is left alone where the page
// around it is refreshed.
class ScoreChart extends HTMLElement {
  static observedAttributes = ["data-course"];
  #plot = null;
  #course = null;
  #rows = 0; // of names of marks, above the plot
  #stop = new AbortController();

  connectedCallback() {
    if (!this.shadowRoot) {
      const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: this.dataset.sheet });
      this.attachShadow({ mode: "open" }).append(style, document.createElement("div"));
      style.addEventListener("load", () => this.#draw());
    }
    this.#stop = new AbortController();
    const again = () => this.#begin();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, this.#stop);
    addEventListener("resize", again, this.#stop); // names of marks may need more rows
    this.#draw();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#plot?.destroy();
    this.#plot = null;
  }

  attributeChangedCallback() {
    if (this.shadowRoot) this.#draw();
  }

  #size() {
    return { width: Math.max(240, this.clientWidth), height: (this.#course?.band ? 200 : this.clientWidth < 500 ? 220 : 260) + LABEL + ROW * this.#rows };
  }

  #draw() {
    const before = this.#course;
    this.#course = JSON.parse(this.dataset.course);
    const names = (c) => JSON.stringify([c?.clock, c?.titles, c?.baseline, c?.marks, c?.lines.map((l) => l.name)]);
    if (this.#plot && names(before) === names(this.#course)) this.#renew(before.x);
    else this.#begin();
  }

  // renew draws new data. A part of the plot that a person has zoomed to stays in view.
  #renew(x) {
    const { min, max } = this.#plot.scales.x, zoomed = min > x[0] || max < x.at(-1);
    this.#plot.setData(this.#data(), !zoomed);
    if (zoomed) this.#plot.setScale("x", { min, max });
    else if (this.#needed() > this.#rows) this.#begin(); // with time, marks move closer to each other
  }

  // needed returns how many rows the names of marks need.
  #needed() {
    const size = this.#course.band ? BAND : SCORE, width = Math.max(1, this.clientWidth - size - LABEL - RIGHT), x = this.#course.x;
    const scale = width / Math.max(x.at(-1) - x[0], 1e-9);
    return Math.max(0, ...this.#named(this.#font(), width, (m) => (m.x - x[0]) * scale, ROWS).map((n) => n.row + 1));
  }

  #font() {
    return "12px " + getComputedStyle(this).fontFamily;
  }

  #data() {
    const { x, lines, band } = this.#course;
    return [x, ...lines.map((l) => l.y), ...(band ? [band.low, band.high] : [])];
  }

  #begin() {
    this.#plot?.destroy();
    const css = getComputedStyle(this);
    const colour = (name) => css.getPropertyValue(name).trim();
    const font = this.#font(), narrow = this.clientWidth < NARROW;
    const clock = this.#course.clock ? { values: (u, at) => times(at, narrow) } : {}; // in local time
    const axis = { stroke: colour("--faint"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const title = (label) => ({ label, labelSize: LABEL, labelFont: font });
    const { band, baseline, lines } = this.#course;
    const names = lines.map((l) => l.name).sort(); // by which colors go, as the worst line comes first
    const scores = (u, low, high) => [0, Math.max(1.25, high * 1.08)];
    const signal = (u, low, high) => {
      const from = Math.min(low, baseline?.low ?? low), to = Math.max(high, baseline?.high ?? high);
      const free = (to - from || Math.abs(to) || 1) * 0.08;
      return [from - free, to + free];
    };
    const size = band ? BAND : SCORE, x = this.#course.x;
    this.#rows = this.#needed();
    const side = (label) => ({ label, stroke: "transparent", points: { show: false }, value: (u, y) => number(y) });
    this.#plot = new uPlot({
      ...this.#size(),
      padding: [8 + ROW * this.#rows, RIGHT, null, null],
      scales: { x: { time: this.#course.clock }, y: { range: band ? signal : scores } },
      axes: [
        { ...axis, ...clock, space: this.#course.clock && !narrow ? 84 : 60, ...title(this.#course.clock ? timeTitle(new Date(x.at(-1) * 1000)) : this.#course.titles.x) },
        { ...axis, size, values: (u, at) => at.map(number), ...title(short(fitting(this.#course.titles.y, 22), 22)) },
      ],
      cursor: { points: { size: 6 } },
      bands: band ? [{ series: [3, 2], fill: colour("--line-0") + "30" }] : [],
      series: [
        { label: this.#course.clock ? "time" : this.#course.unit, value: this.#course.clock ? (u, s) => (s == null ? "" : moment(s)) : undefined },
        ...lines.map((l) => ({
          label: short(l.name, 28), stroke: colour(`--line-${names.indexOf(l.name)}`), width: 1.75, points: { show: l.y.length < 3 },
          value: (u, y) => (band || y == null ? number(y) : y.toFixed(2)),
        })),
        ...(band ? [side("− 1 SD"), side("+ 1 SD")] : []),
      ],
      hooks: {
        drawClear: [(u) => (band ? baseline && this.#baseline(u, baseline, colour("--baseline")) : this.#threshold(u, colour("--drift")))],
        draw: [(u) => this.#marks(u, colour, font)],
        setLegend: [(u) => u.legend.idx == null && u.setLegend({ idx: u.data[0].length - 1 }, false)], // the latest where nothing is pointed at
      },
    }, this.#data(), this.shadowRoot.querySelector("div"));
  }

  // baseline draws the band of the baseline and its mean, below the values.
  #baseline(u, baseline, fill) {
    const [top, middle, bottom] = [baseline.high, baseline.mean, baseline.low].map((y) => u.valToPos(y, "y", true));
    const { left, width } = u.bbox;
    u.ctx.save();
    u.ctx.fillStyle = fill;
    u.ctx.globalAlpha = 0.25;
    u.ctx.fillRect(left, top, width, Math.max(1, bottom - top));
    u.ctx.restore();
    this.#line(u, fill, [left, middle, left + width, middle], [6, 4]);
  }

  // threshold draws the line of 1, below the scores.
  #threshold(u, stroke) {
    const y = u.valToPos(1, "y", true);
    this.#line(u, stroke, [u.bbox.left, y, u.bbox.left + u.bbox.width, y], [6, 4]);
  }

  // marks draws onsets and versions. Their names are in rows above the plot, to which their lines lead.
  #marks(u, colour, font) {
    const { left, top, width, height } = u.bbox, ratio = devicePixelRatio;
    const at = (m) => u.valToPos(m.x, "x");
    const named = new Map(this.#named(font, width / ratio, at, this.#rows).map((n) => [n.mark, n]));
    for (const m of this.#course.marks) {
      if (m.x < u.scales.x.min || m.x > u.scales.x.max) continue;
      const name = named.get(m), x = left + at(m) * ratio, stroke = colour(m.kind === "onset" ? "--drift" : "--faint");
      const up = name ? ROW * (name.row + 0.9) * ratio : 0;
      this.#line(u, stroke, [x, top - up, x, top + height], m.kind === "onset" ? [] : [2, 3]);
      if (!name) continue;
      u.ctx.save();
      u.ctx.fillStyle = stroke;
      u.ctx.font = font.replace("12px", 12 * ratio + "px");
      u.ctx.textAlign = "left";
      u.ctx.fillText(name.text, left + name.from * ratio, top - (ROW * name.row + 5) * ratio);
      u.ctx.restore();
    }
  }

  // named places the names of marks beside their lines, in the lowest rows in which no name touches another or a line
  // that leads to a higher row. Of several arrangements it takes the first with the most names, of which those of onsets
  // matter more. A mark for which there is no room has no name.
  #named(font, width, at, rows) {
    const onset = (mark) => mark.kind === "onset", worth = (placed) => placed.reduce((sum, p) => sum + (onset(p.mark) ? 100 : 1), 0);
    let best = [];
    for (const onsetsFirst of [1, -1]) {
      for (const order of [-1, 1]) {
        const marks = [...this.#course.marks].sort((a, b) => onsetsFirst * (onset(b) - onset(a)) || order * (a.x - b.x));
        for (const flipped of ["", "onset", "version"]) {
          const placed = this.#placed(font, width, at, rows, marks, (x, mark) => x > width / 2 !== (mark.kind === flipped));
          if (worth(placed) > worth(best)) best = placed;
        }
      }
    }
    return best;
  }

  // placed places the names of marks one by one, on the left of their lines where that side is preferred and has room.
  #placed(font, width, at, rows, marks, leftFirst) {
    const ctx = document.createElement("canvas").getContext("2d"), placed = [], { band } = this.#course;
    ctx.font = font;
    for (const mark of marks) {
      const most = width < NARROW ? 24 : 60, text = short(band && mark.kind === "onset" ? fitting(mark.text, most) : mark.text, most), x = at(mark), size = ctx.measureText(text).width;
      if (x < 0 || x > width) continue;
      const sides = [[x - 5 - size, x - 5], [x + 5, x + 5 + size]];
      const free = (row, [from, to]) => from >= -30 && to <= width + RIGHT && placed.every((p) =>
        (p.row !== row || to + 8 < p.from || from - 8 > p.to) && // the other name
        (p.row < row || p.x < from - 4 || p.x > to + 4) && // its line
        (p.row > row || x < p.from - 4 || x > p.to + 4)); // the line of this one
      search: for (let row = 0; row < rows; row++) {
        for (const [from, to] of leftFirst(x, mark) ? sides : [...sides].reverse()) {
          if (!free(row, [from, to])) continue;
          placed.push({ mark, text, x, row, from, to });
          break search;
        }
      }
    }
    return placed;
  }

  #line(u, stroke, [x1, y1, x2, y2], dash) {
    u.ctx.save();
    u.ctx.strokeStyle = stroke;
    u.ctx.lineWidth = devicePixelRatio;
    u.ctx.setLineDash(dash.map((d) => d * devicePixelRatio));
    u.ctx.beginPath();
    u.ctx.moveTo(x1, y1);
    u.ctx.lineTo(x2, y2);
    u.ctx.stroke();
    u.ctx.restore();
  }
}

customElements.define("score-chart", ScoreChart);
