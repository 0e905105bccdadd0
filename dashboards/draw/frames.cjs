// Makes of panels and the answers of Prometheus the series that Grafana draws, as its data source for Prometheus makes frames of answers, with
// the transformations and the options of fields of @grafana/data.
"use strict";

const data = require("@grafana/data");

const { FieldType } = data;

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
    // As in Grafana, the title of the y axis is not that of the x axis.
    { ...option("custom.axisLabel", data.identityOverrideProcessor), shouldApply: (field) => field.type === FieldType.number },
  ]);
}

// Options of panels that change how a series looks.
const drawingOptions = [
  "hideFrom", "lineStyle", "lineWidth", "drawStyle", "fillOpacity", "showPoints", "axisSoftMin", "axisSoftMax", "stacking", "width", "minWidth",
  "cellOptions", "align",
];

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

// registerOptions is called once, before any series is made.
function registerOptions() {
  registerFieldOptions();
  registerTransformations();
}

// seriesOf returns what a panel draws in a theme.
async function seriesOf({ panel, answers, variables, range }, theme, timeZone) {
  const replaceVariables = interpolator(variables, range);
  const transformed = await transform(panel.transformations ?? [], framesOf(panel, answers), replaceVariables);
  const fieldConfig = { defaults: panel.fieldConfig.defaults, overrides: panel.fieldConfig.overrides ?? [] };
  return { fieldConfig, replaceVariables, series: data.applyFieldOverrides({ data: transformed, fieldConfig, replaceVariables, theme, timeZone }) };
}

module.exports = { registerOptions, seriesOf };
