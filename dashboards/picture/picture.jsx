// Draws the first screen of a dashboard for docs/tour.md. Panels, numbers, tables, lines and legends are Grafana's own components of @grafana/ui.
// It exports no state timeline: rows and colors are drawn here, on its axes.
//
// window.dashboard: { title, dark, variables: [[label, value]], closed: [title], sketches: [as in draw.cjs], from, to }, times in milliseconds.
// When all is drawn, window.faults lists what a person could not read.
import { createRoot } from "react-dom/client";
import * as data from "@grafana/data";
import {
  BigValue, BigValueTextMode, GlobalStyles, Icon, PanelChrome, PanelContextProvider, ThemeContext, TimeSeries, UPlotChart, UPlotConfigBuilder,
  VizLayout, VizLegend, measureText,
} from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";
import "@fontsource/inter/latin-400.css";
import "@fontsource/inter/latin-500.css";
import info from "icons/info-circle.svg";
import right from "icons/angle-right.svg";
import { registerOptions, seriesOf } from "../draw/frames.cjs";

const { dashboard } = window;
const theme = data.createTheme({ colors: { mode: dashboard.dark ? "dark" : "light" } });
const timeZone = "utc";
const samples = dashboard.sketches.flatMap((s) => Object.values(s.answers)).flatMap(({ result }) => result).flatMap((r) => r.values ?? []);
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
  if (!frame) return <div className="none">{panel.fieldConfig.defaults.noValue}</div>;
  data.cacheFieldDisplayNames(drawn.series);
  return <TableNG data={frame} width={width} height={height} cellHeight="sm" />;
}

// The component joins frames and forgets what the colors by name depend on.
function Lines({ panel, drawn, width, height }) {
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
  const rows = drawn.series.flatMap((frame) => frame.fields.filter((f) => f.type === data.FieldType.number).map((field) => ({
    name: data.getFieldDisplayName(field, frame, drawn.series), times: frame.fields[0].values, shown: field.values.map((v) => field.display(v)),
  })));
  const colors = new Map(rows.flatMap((r) => r.shown.map((s) => [data.formattedValueToString(s), s.color])));
  const items = [...colors].map(([label, color]) => ({ label, color, yAxis: 1 }));
  const legend = (
    <VizLayout.Legend placement="bottom">
      <VizLegend placement="bottom" items={items} displayMode="list" />
    </VizLayout.Legend>
  );
  return (
    <VizLayout width={width} height={height} legend={legend}>
      {(width, height) => <UPlotChart width={width} height={height} config={rowsOf(panel, rows)} data={[[dashboard.from, dashboard.to], [0, 1]]} />}
    </VizLayout>
  );
}

// rowsOf draws a row for each series, the first one on top. A state lasts until the next sample.
function rowsOf(panel, rows) {
  const config = new UPlotConfigBuilder(timeZone);
  const widest = Math.max(...rows.map((r) => measureText(r.name, 12).width));
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
    const high = (u.bbox.height / rows.length) * panel.options.rowHeight;
    rows.forEach(({ times, shown }, row) => {
      const top = u.valToPos(middles[row], "y", true) - high / 2;
      for (let begin = 0, end = 1; begin < shown.length; begin = end++) {
        while (end < shown.length && shown[end].text === shown[begin].text) end++;
        u.ctx.fillStyle = shown[begin].color;
        u.ctx.fillRect(x(times[begin]), top, x(times[end] ?? dashboard.to) - x(times[begin]) - 1, high);
      }
    });
  });
  return config;
}

const kinds = { stat: Stat, table: Table, timeseries: Lines, "state-timeline": States };

function Panel({ panel, drawn }) {
  const Kind = kinds[panel.type];
  const { x, y, w, h } = panel.gridPos;
  const column = (width + gap) / columns;
  const place = { position: "absolute", left: x * column, top: y * (unit + gap), width: w * column - gap, height: h * (unit + gap) - gap };
  const padded = panel.type === "table" || panel.type === "stat" ? "none" : "md";
  return (
    <div style={place}>
      <PanelChrome title={drawn.replaceVariables(panel.title)} description={panel.description} width={place.width} height={place.height} padding={padded}>
        {(width, height) => <Kind {...{ panel, drawn, width, height }} />}
      </PanelChrome>
    </div>
  );
}

function Dashboard({ panels }) {
  const height = Math.max(...panels.map(({ panel: { gridPos } }) => gridPos.y + gridPos.h)) * (unit + gap);
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PanelContextProvider value={{ eventsScope: "picture", eventBus: new data.EventBusSrv() }}>
        <style>{`
          *, *::before, *::after { box-sizing: border-box }
          body { background: ${theme.colors.background.canvas}; color: ${theme.colors.text.primary}; margin: 0 }
          main { padding: ${margin}px; width: ${width}px; box-sizing: content-box }
          .top { display: flex; gap: 8px; align-items: center; margin-bottom: 16px; height: 32px }
          .top b { font-size: 18px; font-weight: 500; margin-right: auto }
          .top span { border: 1px solid ${theme.colors.border.medium}; border-radius: 2px; padding: 5px 8px; font-size: 12px; line-height: 20px }
          .top span { background: ${theme.colors.background.primary} }
          .top i { font-style: normal; font-weight: 500; padding-right: 10px }
          .closed { display: flex; align-items: center; gap: 8px; height: ${unit + gap}px; font-size: 16px; font-weight: 500 }
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

// cut lists texts that have less room than they need.
function cut() {
  return [...document.querySelectorAll(".rdg-cell, .rdg-cell *, h2, .top *")]
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && e.innerText?.trim())
    .map((e) => `${e.innerText} takes ${e.scrollWidth} of ${e.clientWidth} pixels`);
}

async function main() {
  registerOptions();
  const panels = [];
  for (const sketch of dashboard.sketches) panels.push({ panel: sketch.panel, drawn: await seriesOf(sketch, theme, timeZone) });
  await document.fonts.load("400 14px Inter");
  await document.fonts.load("500 14px Inter");
  const faults = [];
  const root = createRoot(document.body.appendChild(document.createElement("div")), { onUncaughtError: (err) => faults.push(err.stack) });
  root.render(<Dashboard panels={panels} />);
  await new Promise((drawn) => setTimeout(drawn, 1500));
  window.faults = faults.concat(cut());
}

main().catch((err) => { window.faults = [err.stack]; });
