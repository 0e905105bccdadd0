"use strict";

// Zooms into the course of a signal: drag across it for a part, double-click for all. Everything else in a report works without scripts.
for (const course of document.querySelectorAll(".past-course")) {
  const plot = course.querySelector(".plot"), marked = plot.querySelector(".marked"), [first, last] = course.querySelectorAll(".end");
  const hovers = [...plot.querySelectorAll(".hover")], { width } = plot.viewBox.baseVal, ends = [first.textContent, last.textContent];
  const least = width / 50; // of what is shown
  let shown = [0, width], begin = null;

  // place returns where a pointer is, in the units of the whole course.
  const place = (e) => {
    const box = course.getBoundingClientRect(), whole = course.viewBox.baseVal;
    const at = whole.x + ((e.clientX - box.left) / box.width) * whole.width;
    return shown[0] + (Math.min(width, Math.max(0, at)) / width) * (shown[1] - shown[0]);
  };

  // named returns the name of a place on the axis.
  const named = (x) => {
    const hover = hovers.findLast((h) => h.x.baseVal.value <= x) ?? hovers[0];
    return hover?.querySelector("title").textContent.split(": ")[0] ?? "";
  };

  const show = (from, to) => {
    shown = [from, to];
    plot.setAttribute("viewBox", `${from} 0 ${to - from} ${plot.viewBox.baseVal.height}`);
    [first.textContent, last.textContent] = to - from === width ? ends : [named(from), named(to)];
  };

  const mark = (from, to) => {
    marked.setAttribute("x", Math.min(from, to));
    marked.setAttribute("width", Math.abs(to - from));
  };

  course.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    e.preventDefault(); // no text is selected
    course.setPointerCapture(e.pointerId);
    begin = place(e);
  });
  course.addEventListener("pointermove", (e) => begin !== null && mark(begin, place(e)));
  course.addEventListener("pointercancel", () => { begin = null; mark(0, 0); });
  course.addEventListener("pointerup", (e) => {
    const [from, to] = [begin, place(e)].sort((a, b) => a - b);
    if (begin !== null && to - from > least) show(from, to);
    begin = null;
    mark(0, 0);
  });
  course.addEventListener("dblclick", () => show(0, width));
  course.closest("figure").querySelector(".zoom").hidden = false;
}
