"use strict";

// short cuts a text off that is too long, or a name would make the page wider than a phone.
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// times names the times on the axis: days once for each, and else hours and minutes, or seconds where they are close.
function times(at) {
  const text = at.map((s) => new Date(s * 1000).toISOString());
  const step = at.length > 1 ? at[1] - at[0] : 60;
  return text.map((t, i) => {
    const day = i === 0 || text[i - 1].slice(0, 10) !== t.slice(0, 10) ? "\n" + t.slice(0, 10) : "";
    return (step >= 86400 ? t.slice(5, 10) : t.slice(11, step < 60 ? 19 : 16)) + day;
  });
}

// <score-chart> draws its attribute data-course, and again when that changes. It draws in a shadow, which is left alone where the page
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
    return { width: Math.max(240, this.clientWidth), height: this.clientWidth < 500 ? 220 : 260 };
  }

  #draw() {
    const before = this.#course;
    this.#course = JSON.parse(this.dataset.course);
    const names = (c) => JSON.stringify([c?.clock, c?.lines.map((l) => l.name)]);
    if (this.#plot && names(before) === names(this.#course)) this.#plot.setData(this.#data());
    else this.#begin();
  }

  #data() {
    return [this.#course.x, ...this.#course.lines.map((l) => l.y)];
  }

  #begin() {
    this.#plot?.destroy();
    const css = getComputedStyle(this);
    const colour = (name) => css.getPropertyValue(name).trim();
    const font = "12px " + css.fontFamily;
    const clock = this.#course.clock ? { values: (u, at) => times(at) } : {};
    const axis = { stroke: colour("--faint"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    this.#plot = new uPlot({
      ...this.#size(),
      tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
      scales: { x: { time: this.#course.clock }, y: { range: (u, low, high) => [0, Math.max(1.25, high * 1.08)] } },
      axes: [{ ...axis, ...clock }, { ...axis, size: 44 }],
      cursor: { points: { size: 6 } },
      series: [
        { label: this.#course.clock ? "time (UTC)" : this.#course.unit, value: this.#course.clock ? "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" : undefined },
        ...this.#course.lines.map((l, i) => ({
          label: short(l.name, 28), stroke: colour(`--line-${i}`), width: 1.75, points: { show: l.y.length < 3 },
          value: (u, y) => (y == null ? "" : y.toFixed(2)),
        })),
      ],
      hooks: { drawClear: [(u) => this.#threshold(u, colour("--drift"))], draw: [(u) => this.#marks(u, colour, font)] },
    }, this.#data(), this.shadowRoot.querySelector("div"));
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
      u.ctx.fillText(short(m.text, 60), x + (right ? -5 : 5) * devicePixelRatio, u.bbox.top + (12 + 15 * (row++ % 6)) * devicePixelRatio);
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
