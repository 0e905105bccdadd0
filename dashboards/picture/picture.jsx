// Draws dashboards. Panels, numbers, tables, lines and legends are Grafana's own components of @grafana/ui. It exports no state timeline, heat map
// and bar chart: rows, cells and bars are drawn here, on its axes.
//
// window.dashboard: { title, dark, variables: [[label, value]], closed: [title], panels: [as in draw.cjs, with their place at], from, to }, times
// in milliseconds.
// When all is drawn, window.faults lists what a person could not read.
import { createRoot } from "react-dom/client";
import * as data from "@grafana/data";
import {
  BigValue, BigValueTextMode, GlobalStyles, Icon, PanelChrome, PanelContextProvider, ThemeContext, TimeSeries, UPlotChart, UPlotConfigBuilder,
  VizLayout, VizLegend, measureText,
} from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";
import * as chromatic from "d3-scale-chromatic";
import "@fontsource/inter/latin-400.css";
import "@fontsource/inter/latin-500.css";
import info from "icons/info-circle.svg";
import right from "icons/angle-right.svg";
import { registerOptions, seriesOf } from "../draw/frames.cjs";

const { dashboard } = window;
const theme = data.createTheme({ colors: { mode: dashboard.dark ? "dark" : "light" } });
const timeZone = "utc";
const samples = dashboard.panels.flatMap((s) => Object.values(s.answers ?? {})).flatMap(({ result }) => result).flatMap((r) => r.values ?? []);
dashboard.from = Math.max(dashboard.from, Math.min(...samples.map(([time]) => time * 1000)));
const timeRange = { from: data.dateTime(dashboard.from), to: data.dateTime(dashboard.to) };
timeRange.raw = timeRange;

// Grafana's grid, and what is around it, in pixels.
const columns = 24, unit = 30, gap = 8, margin = 16;
const width = window.innerWidth - 2 * margin;

// Icons are files of a Grafana server.
window.fetch = async (address) =>
  new Response(String(address).includes("angle-right") ? right : info, { headers: { "Content-Type": "image/svg+xml" } });

function Stat({ panel, drawn, width, height }) {
  const { reduceOptions, colorMode, graphMode, justifyMode, text } = panel.options;
  const [value] = data.getFieldDisplayValues({ data: drawn.series, ...drawn, reduceOptions, theme, timeZone });
  return <BigValue value={value.display} textMode={BigValueTextMode.Value} {...{ theme, width, height, colorMode, graphMode, justifyMode, text }} />;
}

function Table({ panel, drawn, width, height }) {
  const [frame] = drawn.series.filter((f) => f.fields.length > 0);
  if (!frame) return <None panel={panel} />;
  data.cacheFieldDisplayNames(drawn.series);
  return <TableNG data={frame} width={width} height={height} cellHeight="sm" />;
}

// The component joins frames and forgets what the colors by name depend on.
function Lines({ panel, drawn, width, height }) {
  data.cacheFieldDisplayNames(drawn.series); // by which colors are chosen
  for (const frame of drawn.series) {
    for (const field of frame.fields.filter((f) => f.type === data.FieldType.number)) {
      field.config.color = { mode: "fixed", fixedColor: data.getFieldSeriesColor(field, theme).color };
    }
  }
  const room = { fieldMap: {}, indicesOnly: [], init: (config) => config.setPadding(padding) };
  return <TimeSeries frames={drawn.series} legend={panel.options.legend} renderers={[room]} {...{ timeRange, timeZone, width, height }} />;
}

// Without it, the last time of the axis is cut.
const padding = [null, 30, null, null];

function States({ panel, drawn, width, height }) {
  const rows = coursesOf(drawn).map(({ name, field, times }) => ({ name, times, shown: field.values.map((v) => field.display(v)) }));
  const colors = new Map(rows.flatMap((r) => r.shown.map((s) => [data.formattedValueToString(s), s.color])));
  const paint = (ctx, { shown }, box) => {
    for (let begin = 0, end = 1; begin < shown.length; begin = end++) {
      while (end < shown.length && shown[end].text === shown[begin].text) end++;
      ctx.fillStyle = shown[begin].color;
      box(begin, end, panel.options.rowHeight);
    }
  };
  return <Rows {...{ rows: rows.slice(0, panel.options.perPage || rows.length), items: itemsOf(colors), paint, width, height }} />;
}

function Heat({ panel, drawn, width, height }) {
  const { scheme, min, max, steps } = panel.options.color;
  const colorOf = (value) => {
    const step = Math.min(steps - 1, Math.max(0, Math.floor(((value - min) / (max - min)) * steps)));
    return chromatic["interpolate" + scheme](1 - step / (steps - 1));
  };
  const paint = (ctx, { field }, box) => field.values.forEach((v, i) => {
    ctx.fillStyle = colorOf(v);
    box(i, i + 1, 1);
  });
  const ends = new Map([[String(min), colorOf(min)], [String(max), colorOf(max)]]);
  return <Rows {...{ rows: coursesOf(drawn), items: itemsOf(ends), paint, width, height }} />;
}

// coursesOf returns the fields with numbers, with their names and times.
function coursesOf({ series }) {
  return series.flatMap((frame) => frame.fields.filter((f) => f.type === data.FieldType.number).map((field) => ({
    name: data.getFieldDisplayName(field, frame, series), field, times: frame.fields[0].values,
  })));
}

const itemsOf = (colors) => [...colors].map(([label, color]) => ({ label, color, yAxis: 1 }));

// Rows draws a row for each series, the first one on top, with a legend below. paint calls its last argument for each range of samples with a
// color; a sample lasts until the next one.
function Rows({ rows, items, paint, width, height }) {
  return (
    <Legended {...{ items, width, height }}>
      {(width, height) => <UPlotChart width={width} height={height} config={rowsOf(rows, paint)} data={[[dashboard.from, dashboard.to], [0, 1]]} />}
    </Legended>
  );
}

function Legended({ items, width, height, children }) {
  const legend = (
    <VizLayout.Legend placement="bottom">
      <VizLegend placement="bottom" items={items} displayMode="list" />
    </VizLayout.Legend>
  );
  return <VizLayout width={width} height={height} legend={legend}>{children}</VizLayout>;
}

function rowsOf(rows, paint) {
  const config = new UPlotConfigBuilder(timeZone);
  const widest = Math.max(0, ...rows.map((r) => measureText(r.name, 12).width));
  const middles = rows.map((_, i) => rows.length - i - 0.5);
  config.addScale({ scaleKey: "x", isTime: true, orientation: 0, direction: 1, range: () => [dashboard.from, dashboard.to] });
  config.addScale({ scaleKey: "y", isTime: false, orientation: 1, direction: 1, range: () => [0, rows.length] });
  config.addAxis({ scaleKey: "x", isTime: true, placement: "bottom", theme, timeZone, grid: { show: true } });
  const names = { splits: middles, values: rows.map((r) => r.name), size: widest + 20 };
  config.addAxis({ scaleKey: "y", placement: "left", theme, grid: { show: false }, ...names });
  config.setPadding(padding);
  config.addSeries({ scaleKey: "y", theme, pathBuilder: () => null, pointsBuilder: () => null, showPoints: "never" });
  config.addHook("draw", (u) => {
    const x = (time) => Math.min(Math.max(u.valToPos(time, "x", true), u.bbox.left), u.bbox.left + u.bbox.width);
    rows.forEach((row, i) => {
      paint(u.ctx, row, (begin, end, share) => {
        const high = (u.bbox.height / rows.length) * share;
        const [left, right] = [x(row.times[begin]), x(row.times[end] ?? dashboard.to)];
        u.ctx.fillRect(left, u.valToPos(middles[i], "y", true) - high / 2, right - left - 1, high - 1);
      });
    });
  });
  return config;
}

// Bars draws the bars of each value of a label side by side, one for each series.
function Bars({ panel, drawn, width, height }) {
  const [frame] = drawn.series.filter((f) => f.fields.length > 0);
  if (!frame) return <None panel={panel} />;
  const label = frame.fields.find((f) => f.type === data.FieldType.string);
  const numbers = frame.fields.filter((f) => f.type === data.FieldType.number);
  const items = numbers.map((f) => ({ label: data.getFieldDisplayName(f, frame, drawn.series), color: data.getFieldSeriesColor(f, theme).color, yAxis: 1 }));
  const config = new UPlotConfigBuilder(timeZone);
  const highest = Math.max(...numbers.flatMap((f) => f.values.filter(Number.isFinite)));
  config.addScale({ scaleKey: "x", isTime: false, orientation: 0, direction: 1, range: () => [-0.5, frame.length - 0.5] });
  config.addScale({ scaleKey: "y", isTime: false, orientation: 1, direction: 1, range: () => [0, highest * 1.1 || 1] });
  config.addAxis({ scaleKey: "x", placement: "bottom", theme, grid: { show: false }, splits: label.values.map((_, i) => i), values: label.values.map((v) => data.formattedValueToString(label.display(v))) });
  config.addAxis({ scaleKey: "y", placement: "left", theme, label: numbers[0].config.custom?.axisLabel, formatValue: (v) => data.formattedValueToString(numbers[0].display(v)) });
  config.addSeries({ scaleKey: "y", theme, pathBuilder: () => null, pointsBuilder: () => null, showPoints: "never" });
  config.addHook("draw", (u) => {
    const wide = (u.bbox.width / frame.length) * 0.8 / numbers.length;
    numbers.forEach((f, series) => f.values.forEach((v, i) => {
      const left = u.valToPos(i, "x", true) + (series - numbers.length / 2) * wide;
      const top = u.valToPos(v, "y", true);
      u.ctx.fillStyle = items[series].color;
      u.ctx.fillRect(left, top, wide - 1, u.bbox.top + u.bbox.height - top);
    }));
  });
  return (
    <Legended {...{ items, width, height }}>
      {(width, height) => <UPlotChart width={width} height={height} config={config} data={[label.values.map((_, i) => i), numbers[0].values]} />}
    </Legended>
  );
}

function None({ panel }) {
  return <div className="none">{panel.fieldConfig.defaults.noValue || "No data"}</div>;
}

const kinds = { stat: Stat, table: Table, timeseries: Lines, "state-timeline": States, heatmap: Heat, barchart: Bars };
const ofTimes = ["timeseries", "state-timeline", "heatmap"];

function Panel({ panel, drawn, at: { x, y, w, h } }) {
  const empty = ofTimes.includes(panel.type) && drawn.series.every((f) => f.length === 0);
  const Kind = empty ? None : kinds[panel.type];
  const column = (width + gap) / columns;
  const place = { position: "absolute", left: x * column, top: y * (unit + gap), width: w * column - gap, height: h * (unit + gap) - gap };
  const padded = panel.type === "table" || panel.type === "stat" ? "none" : "md";
  if (panel.type === "row") return <div className="closed" style={place}><Icon name="angle-down" />{panel.title}</div>;
  return (
    <div style={place} className="panel">
      <PanelChrome title={drawn.replaceVariables(panel.title)} description={panel.description} width={place.width} height={place.height} padding={padded}>
        {(width, height) => <Kind {...{ panel, drawn, width, height }} />}
      </PanelChrome>
    </div>
  );
}

function Dashboard({ panels }) {
  const height = Math.max(...panels.map(({ at }) => at.y + at.h)) * (unit + gap);
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PanelContextProvider value={{ eventsScope: "picture", eventBus: new data.EventBusSrv() }}>
        <style>{`
          *, *::before, *::after { box-sizing: border-box }
          body { background: ${theme.colors.background.canvas}; color: ${theme.colors.text.primary}; margin: 0 }
          main { padding: ${margin}px; width: ${width}px; box-sizing: content-box }
          .top { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-bottom: 16px; min-height: 32px }
          .top b { font-size: 18px; font-weight: 500; margin-right: auto }
          .top span { border: 1px solid ${theme.colors.border.medium}; border-radius: 2px; padding: 5px 8px; font-size: 12px; line-height: 20px }
          .top span { background: ${theme.colors.background.primary} }
          .top i { font-style: normal; font-weight: 500; padding-right: 10px }
          .closed { display: flex; white-space: nowrap; align-items: center; gap: 8px; height: ${unit + gap}px; font-size: 16px; font-weight: 500 }
          .none { height: 100%; display: flex; align-items: center; justify-content: center; color: ${theme.colors.text.secondary} }
        `}</style>
        <main>
          <div className="top">
            <b>{dashboard.title}</b>
            {dashboard.variables.map(([label, value]) => <span key={label}><i>{label}</i>{value}</span>)}
          </div>
          <div style={{ position: "relative", height }}>{panels.map((p, i) => <Panel key={i} {...p} />)}</div>
          {dashboard.closed.map((title) => <div className="closed" key={title}><Icon name="angle-right" />{title}</div>)}
        </main>
      </PanelContextProvider>
    </ThemeContext.Provider>
  );
}

// cut lists texts of elements that have less room than they need.
function cut() {
  return [...document.querySelectorAll(".rdg-cell, .rdg-cell *, h2, .top *")]
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && e.innerText?.trim())
    .map((e) => `${e.innerText} takes ${e.scrollWidth} of ${e.clientWidth} pixels`);
}

// On a phone, whose panels are stacked, tables may scroll sideways and legends may scroll.
const phone = window.innerWidth < 769;

// covered lists the texts of a panel that are beyond what is visible, or over one another. Tables may scroll to the rows below.
function covered(panel) {
  const name = panel.querySelector("h2")?.innerText ?? "";
  const tables = [...panel.querySelectorAll(".rdg")].filter((e) => !phone && e.scrollWidth > e.clientWidth + 1);
  const faults = tables.map((e) => `${name}: its table takes ${e.scrollWidth} of ${e.clientWidth} pixels`), seen = [];
  for (const walk = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT); walk.nextNode(); ) {
    const text = walk.currentNode.textContent.trim();
    const range = document.createRange();
    range.selectNode(walk.currentNode);
    const box = range.getBoundingClientRect();
    if (!text || box.width < 2 || walk.currentNode.parentElement.closest(".rdg, style")) continue;
    for (let e = walk.currentNode.parentElement; panel.contains(e); e = e.parentElement) {
      const style = getComputedStyle(e), room = e.getBoundingClientRect();
      if (style.overflowX !== "visible" && (box.right > room.right + 1 || box.left < room.left - 1)) faults.push(`${name}: ${text} is cut at a side`);
      if (phone && style.overflowY === "auto") break;
      if (style.overflowY !== "visible" && (box.bottom > room.bottom + 1 || box.top < room.top - 1)) faults.push(`${name}: ${text} is cut above or below`);
    }
    seen.push({ text, left: box.left, right: box.right, top: box.top, bottom: box.bottom });
  }
  return faults.concat(overlaps(name, seen));
}

function overlaps(name, boxes) {
  const faults = [];
  boxes.forEach((a, i) => boxes.slice(0, i).forEach((b) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 1) faults.push(`${name}: ${b.text} and ${a.text} are drawn over one another`);
  }));
  return faults;
}

// The texts of charts, by canvas: those since it was last cleared.
const written = new Map();
const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.clearRect = function (...box) {
  written.set(this.canvas, []);
  clearRect.apply(this, box);
};
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...most) {
  const size = this.measureText(text), m = this.getTransform();
  const corners = [[x - size.actualBoundingBoxLeft, y - size.actualBoundingBoxAscent], [x + size.actualBoundingBoxRight, y + size.actualBoundingBoxDescent]]
    .map(([x, y]) => m.transformPoint({ x, y }));
  const [left, right] = corners.map((c) => c.x).sort((a, b) => a - b);
  const [top, bottom] = corners.map((c) => c.y).sort((a, b) => a - b);
  if (!written.has(this.canvas)) written.set(this.canvas, []);
  written.get(this.canvas).push({ text, left, right, top, bottom });
  fillText.call(this, text, x, y, ...most);
};

// badlyWritten lists texts in charts that are cut by the edge, or over one another.
function badlyWritten() {
  return [...written].filter(([canvas]) => canvas.isConnected).flatMap(([canvas, texts]) => {
    const name = canvas.closest(".panel")?.querySelector("h2")?.innerText ?? "";
    return texts
      .filter((t) => t.left < -1 || t.top < -1 || t.right > canvas.width + 1 || t.bottom > canvas.height + 1)
      .map((t) => `${name}: ${t.text} is cut by the edge of its chart`)
      .concat(overlaps(name, texts));
  });
}

async function main() {
  registerOptions();
  const panels = [];
  for (const one of dashboard.panels) {
    panels.push({ panel: one.panel, at: one.at, drawn: one.answers ? await seriesOf(one, theme, timeZone) : {} });
  }
  await document.fonts.load("400 14px Inter");
  await document.fonts.load("500 14px Inter");
  const faults = [];
  const root = createRoot(document.body.appendChild(document.createElement("div")), { onUncaughtError: (err) => faults.push(err.stack) });
  root.render(<Dashboard panels={panels} />);
  await new Promise((drawn) => setTimeout(drawn, 1500));
  window.faults = faults.concat(cut(), [...document.querySelectorAll(".panel")].flatMap(covered), badlyWritten());
}

main().catch((err) => { window.faults = [err.stack]; });
