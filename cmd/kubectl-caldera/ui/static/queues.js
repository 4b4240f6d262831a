// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { ask } from "./ask.js";
import { chooser, h, jobsLink, keep, mark, options, say, shortName, times } from "./dom.js";

// bar draws what a queue holds, is due and may hold, as parts of the most that any queue has.
function newBar() {
	const parts = Object.fromEntries(["limit", "held", "more", "due"].map((name) => [name, h("i", { class: name })]));
	const bar = h("div", { class: "bar", "aria-hidden": "true" }, ...Object.values(parts));
	bar.parts = parts;
	return bar;
}

function draw(bar, q, most) {
	const percent = (value) => `${most > 0 ? Math.min(100, (100 * value) / most) : 0}%`;
	const { limit, held, more, due } = bar.parts;
	const within = q.due ? Math.min(q.held.value, q.due.value) : q.held.value;
	held.style.width = percent(within);
	more.style.left = percent(within);
	more.style.width = percent(q.held.value - within);
	limit.hidden = q.limit === null;
	limit.style.width = percent(q.limit?.value ?? 0);
	due.hidden = q.due === null;
	due.style.left = percent(q.due?.value ?? 0);
}

function newRow() {
	const row = h("tr");
	row.cells_ = {
		name: h("a"), bar: newBar(), held: h("td", { class: "n" }), due: h("td", { class: "n" }), limit: h("td", { class: "n" }),
		running: h("td", { class: "n" }), waiting: h("td", { class: "n" }), oldest: h("td", { class: "n" }), state: h("td", { class: "wrap" }),
	};
	const c = row.cells_;
	row.branch = h("span", { class: "quiet", "aria-hidden": "true" });
	row.append(h("th", { scope: "row", class: "name" }, row.branch, c.name), h("td", { class: "bars" }, c.bar), c.held, c.due, c.limit, c.running, c.waiting, c.oldest, c.state);
	return row;
}

function updateRow(row, q, most) {
	const c = row.cells_;
	say(row.branch, q.depth > 0 ? `${"\u2003".repeat(q.depth - 1)}\u2514\u2009` : "");
	say(c.name, q.name);
	mark(c.name, "href", jobsLink({ queue: q.name }));
	mark(c.name, "title", q.name);
	draw(c.bar, q, most);
	say(c.held, q.held.text);
	say(c.due, q.due?.text ?? "–");
	say(c.limit, q.limit?.text ?? "–");
	say(c.running, q.running);
	say(c.waiting, q.waiting);
	say(c.oldest, q.oldest?.ago ?? "–");
	mark(c.oldest, "title", q.oldest ? new Date(q.oldest.at).toLocaleString("en-GB") : null);
	say(c.state, q.state);
	mark(c.state, "class", q.fault ? "wrap bad" : "wrap");
}

export const queues = {
	name: "queues",
	title: "Queues",
	open(_, view) {
		let resource = "";
		const choose = chooser("Resource", (value) => {
			resource = value;
			view.again();
		});
		const count = h("span", { class: "count" });
		const note = h("p", { class: "note" });
		const heldHead = h("th", { scope: "col", class: "n" }, "Held");
		const body = h("tbody");
		const table = h("table", {},
			h("caption", { class: "hidden" }, "Queues, each after the one above it"),
			h("thead", {}, h("tr", {},
				h("th", { scope: "col" }, "Queue"), h("th", { scope: "col", class: "bars" }, "Held, due, limit"), heldHead, h("th", { scope: "col", class: "n" }, "Due"),
				h("th", { scope: "col", class: "n" }, "Limit"), h("th", { scope: "col", class: "n" }, "Running"), h("th", { scope: "col", class: "n" }, "Waiting"),
				h("th", { scope: "col", class: "n" }, "Oldest"), h("th", { scope: "col" }, "State"))),
			body);
		const key = h("ul", { class: "key" }, ...[["held", "held"], ["more", "held beyond its due"], ["due", "due"], ["limit", "may hold at most"]]
			.map(([kind, text]) => h("li", {}, h("i", { class: `swatch ${kind}`, "aria-hidden": "true" }), text)));
		const empty = h("p", { class: "empty", hidden: true }, "There are no queues.");
		const scroll = h("div", { class: "scroll" }, table);
		return {
			head: h("div", { class: "head" }, h("h1", {}, "Queues"), count, h("div", { class: "fields" }, choose.element)),
			body: h("div", {}, note, scroll, empty, key),
			ask: (signal) => ask("queues", { resource }, signal),
			update(data) {
				say(note, data.note);
				say(count, times(data.queues.length, "queue"));
				say(heldHead, `${shortName(data.resource)} held`);
				options(choose.select, null, data.resources.map((name) => ({ name })), resource || data.resource);
				const most = Math.max(0, ...data.queues.flatMap((q) => [q.held.value, q.due?.value ?? 0, q.limit?.value ?? 0]));
				empty.hidden = data.queues.length > 0;
				scroll.hidden = key.hidden = data.queues.length === 0;
				keep(body, data.queues, (q) => q.name, newRow, (row, q) => updateRow(row, q, most));
			},
		};
	},
};
