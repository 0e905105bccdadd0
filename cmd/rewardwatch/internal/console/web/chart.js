"use strict";

// short cuts a text off that is too long, or a name would make the page wider than a phone.
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// two writes a number with two digits.
const two = (n) => String(n).padStart(2, "0");
const day = (d) => d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
const clock = (d, seconds) => two(d.getHours()) + ":" + two(d.getMinutes()) + (seconds ? ":" + two(d.getSeconds()) : "");

// times names the local times on the axis: days once for each, and else hours and minutes, or seconds where they are close.
function times(at) {
  const dates = at.map((s) => new Date(s * 1000));
  const step = at.length > 1 ? at[1] - at[0] : 60;
  return dates.map((d, i) => {
    const below = i === 0 || day(dates[i - 1]) !== day(d) ? "\n" + day(d) : "";
    return (step >= 86400 ? day(d).slice(5) : clock(d, step < 60)) + below;
  });
}

// moment tells a time as it is here and in UTC.
function moment(s) {
  const d = new Date(s * 1000);
  return day(d) + " " + clock(d, true) + " (" + d.toISOString().slice(11, 19) + " UTC)";
}

// number writes a value with as many digits as one reads.
const number = (y) => (y == null ? "" : Math.abs(y) >= 1e5 || (y !== 0 && Math.abs(y) < 1e-3) ? y.toExponential(2) : String(Number(y.toPrecision(4))));

// <score-chart> draws its attribute data-course, scores against 1 or a signal against its baseline, and again when that changes. It draws in a shadow, which is left alone where the page
// around it is refreshed.
class ScoreChart extends HTMLElement {
  static observedAttributes = ["data-course"];
  #plot = null;
  #course = null;
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
    addEventListener("resize", () => this.#plot?.setSize(this.#size()), this.#stop);
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
    return { width: Math.max(240, this.clientWidth), height: this.#course?.band ? 200 : this.clientWidth < 500 ? 220 : 260 };
  }

  #draw() {
    const before = this.#course;
    this.#course = JSON.parse(this.dataset.course);
    const names = (c) => JSON.stringify([c?.clock, c?.baseline, c?.marks, c?.lines.map((l) => l.name)]);
    if (this.#plot && names(before) === names(this.#course)) this.#plot.setData(this.#data());
    else this.#begin();
  }

  #data() {
    const { x, lines, band } = this.#course;
    return [x, ...lines.map((l) => l.y), ...(band ? [band.low, band.high] : [])];
  }

  #begin() {
    this.#plot?.destroy();
    const css = getComputedStyle(this);
    const colour = (name) => css.getPropertyValue(name).trim();
    const font = "12px " + css.fontFamily;
    const clock = this.#course.clock ? { values: (u, at) => times(at) } : {}; // in local time
    const axis = { stroke: colour("--faint"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const { band, baseline, lines } = this.#course;
    const scores = (u, low, high) => [0, Math.max(1.25, high * 1.08)];
    const signal = (u, low, high) => {
      const from = Math.min(low, baseline?.low ?? low), to = Math.max(high, baseline?.high ?? high);
      const free = (to - from || Math.abs(to) || 1) * 0.08;
      return [from - free, to + free];
    };
    const side = (label) => ({ label, stroke: "transparent", points: { show: false }, value: (u, y) => number(y) });
    this.#plot = new uPlot({
      ...this.#size(),
      scales: { x: { time: this.#course.clock }, y: { range: band ? signal : scores } },
      axes: [{ ...axis, ...clock, space: this.#course.clock ? 84 : 60 }, { ...axis, size: band ? 60 : 44, values: (u, at) => at.map(number) }],
      cursor: { points: { size: 6 } },
      bands: band ? [{ series: [3, 2], fill: colour("--line-0") + "30" }] : [],
      series: [
        { label: this.#course.clock ? "time" : this.#course.unit, value: this.#course.clock ? (u, s) => (s == null ? "" : moment(s)) : undefined },
        ...lines.map((l, i) => ({
          label: short(l.name, 28), stroke: colour(`--line-${i}`), width: 1.75, points: { show: l.y.length < 3 },
          value: (u, y) => (band ? number(y) : y == null ? "" : y.toFixed(2)),
        })),
        ...(band ? [side("− 1 sd"), side("+ 1 sd")] : []),
      ],
      hooks: {
        drawClear: [(u) => (band ? baseline && this.#baseline(u, baseline, colour("--baseline")) : this.#threshold(u, colour("--drift")))],
        draw: [(u) => this.#marks(u, colour, font)],
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

  // marks draws onsets and versions, their names below one another.
  #marks(u, colour, font) {
    let row = 0;
    for (const m of this.#course.marks) {
      if (m.x < u.scales.x.min || m.x > u.scales.x.max) continue;
      const x = u.valToPos(m.x, "x", true);
      const stroke = colour(m.kind === "onset" ? "--drift" : "--faint");
      this.#line(u, stroke, [x, u.bbox.top, x, u.bbox.top + u.bbox.height], m.kind === "onset" ? [] : [2, 3]);
      const right = x > u.bbox.left + u.bbox.width / 2;
      u.ctx.save();
      u.ctx.fillStyle = stroke;
      u.ctx.font = font.replace("12px", 12 * devicePixelRatio + "px");
      u.ctx.textAlign = right ? "right" : "left";
      u.ctx.fillText(short(m.text, this.clientWidth < 500 ? 24 : 60), x + (right ? -5 : 5) * devicePixelRatio, u.bbox.top + (12 + 15 * (row++ % 6)) * devicePixelRatio);
      u.ctx.restore();
    }
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
