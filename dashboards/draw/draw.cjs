// Says what Grafana would show: it reads panels with the answers of Prometheus to their queries, and writes the texts of every table, bar chart
// and stat, the series of every time series with their colors and axis, the rows and the legend of every heat map and state timeline, and the
// links of every panel. Frames are made as Grafana's data source for Prometheus makes them; transformations, overrides,
// units, reductions and links are those of @grafana/data, which Grafana itself draws with. package.json holds three packages that it needs at
// their last versions that are no ES modules, which the Node of Debian 12 cannot load from here.
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

const { FieldType } = data;
const theme = data.createTheme();
const timeZone = "utc";

// Options of fields that change a text, a color or a link. Those of the panels themselves, such as the width of a column, do not.
function registerFieldOptions() {
  const option = (id, process, settings = {}) => ({
    id, path: id, name: id, description: "", process, settings, editor: () => null, override: () => null, shouldApply: () => true,
  });
  data.standardFieldConfigEditorRegistry.setInit(() => [
    option("displayName", data.displayNameOverrideProcessor),
    option("unit", data.unitOverrideProcessor),
    option("min", data.numberOverrideProcessor),
    option("max", data.numberOverrideProcessor),
    option("decimals", data.numberOverrideProcessor, { integer: true }),
    option("noValue", data.stringOverrideProcessor),
    option("thresholds", data.thresholdsOverrideProcessor),
    option("mappings", data.valueMappingsOverrideProcessor),
    option("links", data.dataLinksOverrideProcessor),
    option("color", data.identityOverrideProcessor),
    ...drawingOptions.map((id) => option("custom." + id, data.identityOverrideProcessor)),
  ]);
}

// Options of panels that change how a series looks.
const drawingOptions = ["hideFrom", "lineStyle", "drawStyle", "axisSoftMin", "axisSoftMax", "stacking", "width", "minWidth"];

function registerTransformations() {
  data.standardTransformersRegistry.setInit(() =>
    [...new Set(Object.values(data.standardTransformers))].map((t) => ({ id: t.id, name: t.name, editor: () => null, transformation: () => Promise.resolve(t) })));
}

const parseSample = (text) => (/^[+-]?inf$/i.test(text) ? (text[0] === "-" ? -Infinity : Infinity) : parseFloat(text));

// An instant query in the format table is one frame: Time, the labels, Value (Value #A where there are several queries).
function table(refId, answer, several) {
  const series = answer.result;
  if (series.length === 0) {
    return { refId, fields: [], length: 0 };
  }
  const labels = [...new Set(series.flatMap((s) => Object.keys(s.metric).sort()))];
  const field = (name, type, values, config = {}) => ({ name, type, values, config });
  return {
    refId,
    length: series.length,
    fields: [
      field("Time", FieldType.time, series.map((s) => s.value[0] * 1000)),
      ...labels.map((l) => field(l, FieldType.string, series.map((s) => s.metric[l] ?? ""), { filterable: true })),
      field(several ? `Value #${refId}` : "Value", FieldType.number, series.map((s) => parseSample(s.value[1]))),
    ],
  };
}

// Any other query is a frame for each series: Time, and a value that is called what the legend says.
function courses(target, answer) {
  return answer.result.map((s) => {
    const points = s.values ?? [s.value];
    const legend = (target.legendFormat ?? "").replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => s.metric[label] ?? "");
    return {
      refId: target.refId,
      length: points.length,
      fields: [
        { name: "Time", type: FieldType.time, config: {}, values: points.map((p) => p[0] * 1000) },
        { name: "Value", type: FieldType.number, labels: s.metric, config: legend ? { displayNameFromDS: legend } : {}, values: points.map((p) => parseSample(p[1])) },
      ],
    };
  });
}

function framesOf(panel, answers) {
  const tables = panel.targets.filter((t) => t.format === "table");
  return panel.targets.flatMap((t) => (t.format === "table" ? [table(t.refId, answers[t.refId], tables.length > 1)] : courses(t, answers[t.refId])));
}

// interpolator fills variables as Grafana does: its own, those of the dashboard, and those of the row or series that a link belongs to. What it
// does not know it leaves as it is.
function interpolator(variables, range) {
  const pattern = /\$(\w+)|\$\{(\w+)(?:\.([^:}]+))?(?::([^}]+))?\}/g;
  const own = (name, path, scoped) => {
    const context = scoped?.__dataContext?.value;
    switch (name) {
      case "__url_time_range":
        return { raw: `from=${range.from}&to=${range.to}` };
      case "__data":
        if (context?.rowIndex === undefined) return { value: "" };
        return { value: at({ fields: data.getFieldDisplayValuesProxy({ frame: context.frame, rowIndex: context.rowIndex }) }, path) };
      case "__field":
        return { value: at({ labels: context?.field.labels, name: context?.field.name }, path) };
      default:
        return name in variables ? { value: variables[name] } : undefined;
    }
  };
  return (text, scoped, format) =>
    text.replace(pattern, (match, plain, name, path, ownFormat) => {
      const found = own(plain ?? name, path, scoped);
      if (found === undefined) return match;
      if (found.raw !== undefined) return found.raw;
      const value = found.value === undefined ? "undefined" : String(found.value);
      if (ownFormat === "queryparam") return `var-${plain ?? name}=${encodeURIComponent(value)}`;
      return (ownFormat ?? format) === "uriencode" ? encodeURIComponent(value) : value;
    });
}

// at follows a path such as fields.policy or fields["policy"].
function at(object, path) {
  return (path ?? "").split(/[.[\]"']+/).filter(Boolean).reduce((o, key) => o?.[key], object);
}

function transform(transformations, frames, interpolate) {
  return new Promise((next, error) => data.transformDataFrame(transformations, frames, { interpolate: (v) => interpolate(v) }).subscribe({ next, error }));
}

async function draw({ where, panel, answers, variables, range }) {
  const replaceVariables = interpolator(variables, range);
  const transformed = await transform(panel.transformations ?? [], framesOf(panel, answers), replaceVariables);
  const fieldConfig = { defaults: panel.fieldConfig.defaults, overrides: panel.fieldConfig.overrides ?? [] };
  const series = data.applyFieldOverrides({ data: transformed, fieldConfig, replaceVariables, theme, timeZone });
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
  registerFieldOptions();
  registerTransformations();
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
