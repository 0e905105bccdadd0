// Says what Grafana would show: it reads panels with the answers of Prometheus to their queries, and writes the texts of every table, bar chart
// and stat, the series of every time series with their colors and axis, the rows and the legend of every heat map and state timeline, and the
// links of every panel. Units, reductions, colors and links are those of @grafana/data, which Grafana itself draws with. package.json holds three
// packages that it needs at their last versions that are no ES modules, which the Node of Debian 12 cannot load from here.
//
// stdin:  [{ where, panel, answers: { A: data of Prometheus' API, ... }, variables: { policy: "checkout", ... }, range: { from, to } }]
// stdout: [{ where, columns: [[name, type]], widths: [pixels], leasts: [pixels], rows: [[text]], links: [url], problems: [text],
//            series: [{ name, color, mode, dashed, inLegend }], axis: [from, to], legend: [[text, color]], reds: [color] }]
"use strict";

const data = require("@grafana/data");
const chromatic = require(require.resolve("d3-scale-chromatic", { paths: [require.resolve("@grafana/data")] }));

// The package asks for a browser when it is used; while it is loaded, one of its parts would want a whole one.
globalThis.window = { location: { origin: "http://grafana.example", href: "http://grafana.example/" } };
globalThis.navigator ??= { language: "en-US", languages: ["en-US"] };

const { registerOptions, seriesOf } = require("./frames.cjs");

const { FieldType } = data;
const theme = data.createTheme();
const timeZone = "utc";

async function draw(sketch) {
  const { where, panel } = sketch;
  const { series, fieldConfig, replaceVariables } = await seriesOf(sketch, theme, timeZone);
  const drawn = { where, columns: [], rows: [], links: links(series) };
  if (panel.type === "stat") stat(drawn, panel, series, fieldConfig, replaceVariables);
  if (panel.type === "table" || panel.type === "barchart") cells(drawn, panel, series);
  if (panel.type === "timeseries") curves(drawn, series);
  if (panel.type === "state-timeline") bands(drawn, panel, series);
  if (panel.type === "heatmap") cellsOfHeat(drawn, panel, series);
  return drawn;
}

const finite = (v) => typeof v === "number" && Number.isFinite(v);

// valuesOf lists the fields with numbers, with their frame.
function valuesOf(series) {
  return series.flatMap((frame) => frame.fields.filter((f) => f.type === FieldType.number).map((field) => ({ frame, field })));
}

// described is a series as a legend has it.
function described(series, { frame, field }) {
  const custom = field.config.custom ?? {};
  return {
    name: data.getFieldDisplayName(field, frame, series),
    color: data.getFieldSeriesColor(field, theme).color,
    mode: field.config.color?.mode ?? "",
    dashed: custom.lineStyle?.fill === "dash",
    inLegend: custom.hideFrom?.legend !== true,
  };
}

function curves(drawn, series) {
  const all = valuesOf(series);
  drawn.series = all.map((one) => described(series, one));
  drawn.problems = all
    .filter(({ field }) => !field.values.some(finite))
    .map((one) => `${described(series, one).name} has no point`);
  if (all.length > 0) drawn.axis = axis(all.map(({ field }) => field));
  drawn.rows = all.map(({ field }) => [data.formattedValueToString(field.display(field.values.findLast(finite)))]);
  drawn.columns = all.map(() => ["last", FieldType.number]);
}

// axis is the range of the y axis: that of the values, from the fixed ends or beyond the soft ones. Where all is the same and no end is given,
// it goes to 100, as the axis of an all-zero panel does.
function axis(fields) {
  let [low, high] = [Infinity, -Infinity];
  for (const { values, config } of fields) {
    for (const v of values.filter(finite)) [low, high] = [Math.min(low, v), Math.max(high, v)];
    const { axisSoftMin, axisSoftMax } = config.custom ?? {};
    if (finite(axisSoftMin)) low = Math.min(low, axisSoftMin);
    if (finite(axisSoftMax)) high = Math.max(high, axisSoftMax);
  }
  const { min, max } = fields[0].config;
  if (low === 0 && high === 0) high = 100;
  return [finite(min) ? min : low, finite(max) ? max : high];
}

// bands are the rows of a state timeline. Its legend has the states that occur, unless the colors are those of a continuous scale, which is
// what Grafana takes where a panel names no other.
function bands(drawn, panel, series) {
  const all = valuesOf(series);
  drawn.series = all.map((one) => described(series, one));
  const legend = new Map();
  const mode = panel.fieldConfig.defaults.color?.mode ?? "continuous-GrYlRd";
  for (const { field } of all) {
    for (const v of field.values.filter(finite)) {
      const shown = field.display(v);
      legend.set(data.formattedValueToString(shown), shown.color);
    }
  }
  drawn.legend = mode.startsWith("continuous") || !panel.options.legend?.showLegend ? [] : [...legend];
  drawn.rows = [...legend.keys()].map((text) => [text]);
  drawn.columns = drawn.rows.map(() => ["state", FieldType.string]);
}

// cellsOfHeat lists the rows of a heat map, and the colors of 1 and beyond in both themes. Schemes of two hues are turned around in both, those
// of one hue in the dark one.
function cellsOfHeat(drawn, panel, series) {
  drawn.series = valuesOf(series).map((one) => described(series, one));
  const { scheme, min, max, steps } = panel.options.color;
  const twoHues = ["BrBG", "PiYG", "PRGn", "PuOr", "RdBu", "RdGy", "RdYlBu", "RdYlGn", "Spectral"].includes(scheme);
  const at = (value, dark) => {
    const step = Math.min(steps - 1, Math.max(0, Math.floor(((value - min) / (max - min)) * steps)));
    const place = step / (steps - 1);
    return chromatic["interpolate" + scheme](twoHues || dark ? 1 - place : place);
  };
  drawn.reds = [1, 1.5, 100].flatMap((value) => [at(value, true), at(value, false)]);
}

function stat(drawn, panel, series, fieldConfig, replaceVariables) {
  const values = data.getFieldDisplayValues({ data: series, fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables, theme, timeZone });
  drawn.columns = values.map(() => [panel.title, FieldType.number]);
  drawn.rows = [values.map((v) => data.formattedValueToString(v.display))];
}

function cells(drawn, panel, series) {
  const filled = series.filter((f) => f.fields.length > 0);
  if (filled.length === 0 || filled[0].length === 0) {
    drawn.rows = [[panel.fieldConfig.defaults.noValue || "No data"]];
    return;
  }
  if (filled.length > 1) drawn.problems = [`${filled.length} tables, of which Grafana shows one`];
  const fields = filled[0].fields.filter((f) => f.config.custom?.hidden !== true);
  drawn.columns = fields.map((f) => [data.getFieldDisplayName(f, filled[0], filled), f.type]);
  drawn.widths = fields.map((f) => f.config.custom?.width ?? 0);
  drawn.leasts = fields.map((f) => f.config.custom?.minWidth ?? 150);
  for (let row = 0; row < filled[0].length; row++) {
    drawn.rows.push(fields.map((f) => data.formattedValueToString(f.display(f.values[row]))));
  }
}

// links lists where every cell, or the last point of every series, leads.
function links(series) {
  const found = new Set();
  for (const frame of series) {
    for (const field of frame.fields) {
      if (field.type === FieldType.time) continue;
      for (let row = 0; row < frame.length; row++) {
        for (const link of field.getLinks({ valueRowIndex: row })) found.add(link.href);
      }
    }
  }
  return [...found];
}

async function main() {
  registerOptions();
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  const out = [];
  for (const panel of JSON.parse(text)) out.push(await draw(panel));
  process.stdout.write(JSON.stringify(out));
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
