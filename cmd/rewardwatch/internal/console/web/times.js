"use strict";

// two writes a number with two digits.
const two = (n) => String(n).padStart(2, "0");
const day = (d) => d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
const clock = (d, seconds) => two(d.getHours()) + ":" + two(d.getMinutes()) + (seconds ? ":" + two(d.getSeconds()) : "");

// zone names the time zone of this browser at a time, such as UTC+5:30.
function zone(d) {
  const ahead = -d.getTimezoneOffset(), size = Math.abs(ahead), minutes = size % 60;
  return "UTC" + (ahead === 0 ? "" : (ahead < 0 ? "-" : "+") + Math.floor(size / 60) + (minutes ? ":" + two(minutes) : ""));
}

// localize shows the times of the page as they are here. Their titles keep UTC.
function localize() {
  for (const e of document.querySelectorAll("time[datetime]")) {
    const d = new Date(e.dateTime);
    const text = day(d) + " " + clock(d, true) + " " + zone(d);
    if (!isNaN(d) && e.textContent !== text) e.textContent = text;
  }
}

// A refresh brings times in UTC. They are changed before they are drawn, however the page was changed.
new MutationObserver(localize).observe(document.documentElement, { subtree: true, childList: true, characterData: true, attributeFilter: ["datetime"] });
localize();

// What people write as the end of a mute is a time of theirs, unless they are in UTC. The service reads and writes UTC.
const written = /^\s*(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d)(?::(\d\d))?\s*$/;
function localizeEnds() {
  if (Intl.DateTimeFormat().resolvedOptions().timeZone === "UTC") return;
  for (const field of document.querySelectorAll('form input[name="until"]')) {
    const parts = written.exec(field.value);
    const d = parts && new Date(field.value.trim().replace(" ", "T") + "Z");
    if (d && !isNaN(d)) field.value = day(d) + " " + clock(d);
    field.previousElementSibling.textContent = "Until (local time)";
    field.form.addEventListener("formdata", (e) => {
      const parts = written.exec(field.value);
      if (!parts) return;
      const [year, month, date, hour, minute, second] = parts.slice(1).map((part) => Number(part ?? 0));
      const local = new Date(year, month - 1, date, hour, minute, second);
      if (field.value.trim().startsWith(day(local) + " " + clock(local))) e.formData.set("until", local.toISOString().slice(0, 19).replace("T", " "));
    });
  }
}
localizeEnds();
