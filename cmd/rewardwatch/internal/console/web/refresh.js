"use strict";

// A refresh would move the button that a person is about to press, and change what was read before deciding: from the
// first touch of a form that changes something there is none until the page is loaded again.
let touched = false;

function touch(e) {
  if (touched || !e.target.closest?.('form[method="post"]')) return;
  touched = true;
  for (const p of document.querySelectorAll(".paused")) p.hidden = false;
}
for (const what of ["focusin", "input", "pointerdown"]) document.addEventListener(what, touch);

// A request can be on its way when the form is touched.
for (const step of ["htmx:before:request", "htmx:before:swap"]) document.addEventListener(step, (e) => touched && e.preventDefault());
