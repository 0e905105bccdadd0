//go:build e2e

package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/page"
)

// recorder records what is drawn on each canvas since it was last cleared: the boxes of texts and the vertical lines,
// in pixels of the canvas. It runs before the scripts of a page.
const recorder = `(() => {
	const proto = CanvasRenderingContext2D.prototype;
	const drawn = canvas => canvas.drawn ??= {texts: [], lines: []};
	let path = [], last = null;
	const around = (name, note) => {
		const original = proto[name];
		proto[name] = function (...args) { note(this, args); return original.apply(this, args); };
	};
	const place = (ctx, x, y) => { const p = ctx.getTransform().transformPoint(new DOMPoint(x, y)); return [p.x, p.y]; };
	around("clearRect", (ctx, [x, y, w, h]) => { if (w >= ctx.canvas.width && h >= ctx.canvas.height) ctx.canvas.drawn = null; });
	around("fillText", (ctx, [text, x, y]) => {
		const m = ctx.measureText(text);
		const [x1, y1] = place(ctx, x - m.actualBoundingBoxLeft, y - m.actualBoundingBoxAscent);
		const [x2, y2] = place(ctx, x + m.actualBoundingBoxRight, y + m.actualBoundingBoxDescent);
		if (text.trim()) drawn(ctx.canvas).texts.push({text, left: Math.min(x1, x2), right: Math.max(x1, x2), top: Math.min(y1, y2), bottom: Math.max(y1, y2)});
	});
	around("beginPath", () => { path = []; last = null; });
	around("moveTo", (ctx, [x, y]) => { last = place(ctx, x, y); });
	around("lineTo", (ctx, [x, y]) => {
		const to = place(ctx, x, y);
		if (last && Math.abs(to[0] - last[0]) < .5) path.push({x: to[0], top: Math.min(to[1], last[1]), bottom: Math.max(to[1], last[1])});
		last = to;
	});
	around("stroke", (ctx, [shape]) => {
		if (!shape) drawn(ctx.canvas).lines.push(...path.map(line => ({...line, color: ctx.strokeStyle})));
	});
})()`

// geometry returns what a person cannot read in a page: texts that are cut off, that leave their card or their drawing,
// or that overlap each other or a line, including those on canvases.
const geometry = `(() => {
	const found = [], grid = (() => {
		const ctx = document.createElement("canvas").getContext("2d");
		ctx.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--line").trim() || "#dde1e9";
		return ctx.strokeStyle;
	})();
	const quote = text => JSON.stringify(text.trim().slice(0, 60));
	const cross = (a, b, by) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > by && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > by;
	const hidden = e => !e.checkVisibility({visibilityProperty: true, opacityProperty: true}) || e.closest(".hidden, .skip") || getComputedStyle(e).clipPath !== "none";
	const texts = [];
	const walk = root => {
		const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
		for (let n = nodes.nextNode(); n; n = nodes.nextNode()) {
			if (n.shadowRoot) walk(n.shadowRoot);
			if (n.nodeType !== Node.TEXT_NODE || !n.data.trim()) continue;
			const e = n.parentElement;
			if (!e || /^(STYLE|SCRIPT|TITLE|OPTION)$/i.test(e.tagName) || hidden(e) || clippedAway(e)) continue;
			const range = document.createRange();
			range.selectNodeContents(n);
			for (const r of range.getClientRects()) {
				if (r.width > 0) texts.push({e, text: n.data, left: r.left, right: r.right, top: r.top, bottom: r.bottom});
			}
		}
	};
	const clippedAway = e => { for (; e; e = e.parentElement) if (getComputedStyle(e).clipPath !== "none") return true; return false; };
	const up = e => e.parentElement || e.getRootNode().host || null;
	walk(document.body);
	for (const t of texts) {
		for (let e = t.e; e && e !== document.body; e = up(e)) {
			const s = getComputedStyle(e), box = e.getBoundingClientRect(), svg = e.tagName === "svg";
			const cuts = svg || /hidden|clip/.test(s.overflowX), scrolls = /auto|scroll/.test(s.overflowX), card = /^(SECTION|ARTICLE|BUTTON|NAV|TD|TH)$/.test(e.tagName) || e.matches(".notice, .badge, .label");
			const titled = s.textOverflow === "ellipsis" && (t.e.closest("[title]"));
			if (t.right > box.right + 1 || t.left < box.left - 1) {
				if (cuts && !titled) found.push("cut off at the side: " + quote(t.text));
				else if (card && !cuts && !scrolls) found.push("leaves its " + e.tagName.toLowerCase() + " at the side: " + quote(t.text));
			}
			if ((t.bottom > box.bottom + 2 || t.top < box.top - 2) && (svg || /hidden|clip/.test(s.overflowY))) found.push("cut off above or below: " + quote(t.text));
			if (scrolls || cuts) { // what one scrolls to lies over nothing
				t.left = Math.max(t.left, box.left); t.right = Math.min(t.right, box.right);
			}
			if (/auto|scroll|hidden|clip/.test(s.overflowY)) { t.top = Math.max(t.top, box.top); t.bottom = Math.min(t.bottom, box.bottom); }
			if (scrolls && e.matches(".scroll") && e.scrollWidth > e.clientWidth + 1 && !e.told) {
				e.told = true;
				found.push("a table is " + e.scrollWidth + " px wide in " + e.clientWidth + ": " + quote(e.getAttribute("aria-label") || e.innerText));
			}
		}
	}
	for (const t of texts) {
		if (/\d-\d\dT\d\d:\d\d/.test(t.text) && !t.e.closest("pre, code, .diff")) found.push("a time in another format: " + quote(t.text));
	}
	texts.sort((a, b) => a.top - b.top);
	for (const [i, a] of texts.entries()) {
		for (let k = i + 1; k < texts.length && texts[k].top < a.bottom; k++) {
			if (cross(a, texts[k], 2)) found.push("texts lie over each other: " + quote(a.text) + " and " + quote(texts[k].text));
		}
	}
	for (const field of document.querySelectorAll("input, button, select")) {
		if (!hidden(field) && field.tagName !== "INPUT" && field.scrollWidth > field.clientWidth + 1) found.push("a control is too narrow: " + quote(field.innerText));
		if (field.tagName === "INPUT" && field.placeholder && !hidden(field)) {
			const ctx = document.createElement("canvas").getContext("2d"), s = getComputedStyle(field);
			ctx.font = s.font;
			if (ctx.measureText(field.placeholder).width > field.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight) + 1) found.push("a placeholder is cut off: " + quote(field.placeholder));
		}
	}
	const canvases = [];
	const charts = root => root.querySelectorAll("*").forEach(e => { if (e.tagName === "CANVAS") canvases.push(e); if (e.shadowRoot) charts(e.shadowRoot); });
	charts(document);
	for (const c of canvases) {
		const {texts, lines} = c.drawn || {texts: [], lines: []};
		if (texts.filter(t => /\d/.test(t.text)).length < 4) found.push("a chart has hardly any text on its axes: " + quote(texts.map(t => t.text).join(" ")));
		for (const [i, t] of texts.entries()) {
			if (t.left < -1 || t.top < -1 || t.right > c.width + 1 || t.bottom > c.height + 1) found.push("leaves the chart: " + quote(t.text));
			for (const other of texts.slice(i + 1)) if (cross(t, other, 1)) found.push("texts of a chart lie over each other: " + quote(t.text) + " and " + quote(other.text));
			for (const l of lines) {
				if (l.color !== grid && l.x > t.left - 2 && l.x < t.right + 2 && l.top < t.bottom && l.bottom > t.top) found.push("a line of a chart touches " + quote(t.text));
			}
		}
	}
	for (const e of document.querySelectorAll("svg:not([aria-hidden], svg svg)")) {
		if (!e.getAttribute("aria-label") || !e.querySelector("text")) found.push("a drawing without labels: " + e.outerHTML.slice(0, 100));
	}
	for (const head of document.querySelectorAll("thead th")) if (!head.textContent.trim()) found.push("a column without a name in " + quote(head.parentElement.innerText));
	return {Faults: [...new Set(found)], Texts: texts.length, Charts: canvases.length};
})()`

// seen is what geometry has checked.
type seen struct {
	Faults        []string
	Texts, Charts int
}

// record records what pages draw on canvases, beginning with the next page.
func (p *tab) record(t *testing.T) {
	t.Helper()
	p.do(t, "note what is drawn", command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: recorder}))
}

// readable returns what a person cannot read in the page. The tab must have recorded it.
func (p *tab) readable(t *testing.T) seen {
	t.Helper()
	p.settle(t)
	return eval[seen](t, p, geometry)
}
