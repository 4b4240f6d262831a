// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { ask } from "./ask.js";
import { chooser, clock, h, keep, mark, number, options, s, say, short, shortName, times } from "./dom.js";

const width = 1200;
const height = 300;
const left = 56;
const bottom = 22;
const top_ = 8;
const mostAreas = 8;

// areas are the queues that held most, the others together as the last one.
function areasOf(data) {
	const sum = (values) => values.reduce((a, v) => a + (v ?? 0), 0);
	const all = data.queues.map((q) => ({ ...q, sum: sum(q.held) + sum(q.due) })).sort((a, b) => b.sum - a.sum || (a.name < b.name ? -1 : 1));
	if (all.length <= mostAreas) {
		return all;
	}
	const rest = all.slice(mostAreas - 1);
	const together = (key) => data.times.map((_, i) => (rest.every((q) => q[key][i] === null) ? null : sum(rest.map((q) => q[key][i]))));
	return [...all.slice(0, mostAreas - 1), { name: `${rest.length} others`, others: true, held: together("held"), due: together("due") }];
}

// nice is a round number that is not smaller.
function nice(value) {
	const size = 10 ** Math.floor(Math.log10(value || 1));
	return [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10].map((n) => n * size).find((n) => n >= value);
}

function picture(data, areas) {
	const moments = data.times.map((t) => Date.parse(t));
	const [first, last] = [moments[0], moments.at(-1)];
	const x = (i) => left + ((moments[i] - first) / (last - first)) * (width - left);
	const total = (key, i) => areas.reduce((sum, q) => sum + (q[key][i] ?? 0), 0);
	const most = nice(Math.max(...moments.flatMap((_, i) => [total("held", i), total("due", i)])));
	const y = (value) => top_ + (1 - value / most) * (height - top_ - bottom);
	const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
		s("line", { class: part === 0 ? "axis" : "grid", x1: left, x2: width, y1: y(part * most), y2: y(part * most) }),
		s("text", { x: left - 8, y: y(part * most) + 4, "text-anchor": "end" }, short(part * most)),
	]);
	const below = moments.map(() => 0);
	const paths = areas.map((q, k) => {
		const low = [...below];
		q.held.forEach((value, i) => { below[i] += value ?? 0; });
		const upper = below.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`);
		const lower = low.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).reverse();
		return s("path", { class: `area a${k}`, d: `M${[...upper, ...lower].join("L")}Z` }, s("title", {}, q.name));
	});
	const due = moments.some((_, i) => total("due", i) > 0)
		? [s("path", { class: "due", d: `M${moments.map((_, i) => `${x(i).toFixed(1)},${y(total("due", i)).toFixed(1)}`).join("L")}` })] : [];
	const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => s("text", {
		x: left + part * (width - left), y: height - 4, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle",
	}, clock(first + part * (last - first), last - first)));
	return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "What queues held over time. The tables have the same." }, ...grid, ...paths, ...due, ...ticks);
}

// mean is the average of what there is.
function mean(values) {
	const known = values.filter((v) => v !== null);
	return known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length;
}

function newRow() {
	const row = h("tr");
	row.append(h("th", { scope: "row", class: "name" }, h("i", { "aria-hidden": "true" }), " ", h("a")), ...Array.from({ length: 5 }, () => h("td", { class: "n" })));
	return row;
}

function updateRow(row, q, k, resource) {
	const [swatch, link] = row.firstElementChild.children;
	mark(swatch, "class", `swatch a${k}`);
	say(link, q.name);
	mark(link, "href", q.others ? null : `#/fairness?${new URLSearchParams({ parent: q.name, ...(resource ? { resource } : {}) })}`);
	mark(link, "title", q.others ? null : `The queues below ${q.name}`);
	const [held, due] = [mean(q.held), mean(q.due)];
	const texts = [q.held.at(-1), q.due.at(-1), held, due].map((v) => (v === null || v === undefined ? "–" : short(v)));
	texts.push(held !== null && due ? `${number((100 * held) / due)} %` : "–");
	texts.forEach((text, i) => say(row.children[i + 1], text));
}

export const fairness = {
	name: "fairness",
	title: "Fairness",
	open(at, view) {
		view.parent = at.parameters.get("parent") ?? "";
		let resource = at.parameters.get("resource") ?? "";
		const choose = chooser("Resource", (value) => {
			resource = value;
			view.again();
		});
		const count = h("span", { class: "count" });
		const up = h("p", { class: "note" }, h("a", { href: "#/fairness" }, "All queues"), " › ", h("span"));
		const chart = h("div");
		const body = h("tbody");
		const heads = [["Queue"], ["Held", "n"], ["Due", "n"], ["Mean held", "n"], ["Mean due", "n"], ["Held of due", "n"]];
		const table = h("div", { class: "scroll" }, h("table", { class: "small" }, h("caption", { class: "hidden" }, "What queues hold and are due, now and on average"),
			h("thead", {}, h("tr", {}, ...heads.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body));
		const moments = h("table", { class: "small" }, h("caption", { class: "hidden" }, "What queues held, by time"), h("thead", {}, h("tr")), h("tbody"));
		const all = h("details", { class: "all" }, h("summary", {}, "Each sample, as a table"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Each sample" }, moments));
		const key = h("ul", { class: "key" }, h("li", {}, "areas: held"), h("li", {}, "dashed line: due to all of them together"));
		const empty = h("p", { class: "empty", hidden: true });
		return {
			head: h("div", { class: "head" }, h("h1", {}, "Fairness"), count, h("div", { class: "fields" }, choose.element)),
			body: h("div", {}, up, chart, key, table, all, empty),
			often: 10000,
			ask: (signal) => ask("history", { parent: view.parent, resource }, signal),
			update(data) {
				up.hidden = view.parent === "";
				say(up.lastElementChild, view.parent);
				options(choose.select, null, data.resources.map((name) => ({ name })), resource || data.resource);
				const areas = areasOf(data);
				const n = data.times.length;
				const drawable = n > 1;
				say(count, n === 0 ? "" : `${shortName(data.resource)}, ${times(n, "sample")} since ${clock(data.times[0])}`);
				chart.hidden = key.hidden = !drawable;
				table.hidden = all.hidden = n === 0;
				empty.hidden = drawable;
				say(empty, n === 1 ? "There is one sample yet. Every 30 seconds there is one more."
					: view.parent ? `No queues below ${view.parent} have a history.` : "There is no history yet. The scheduler that leads takes a sample every 30 seconds.");
				empty.hidden = drawable;
				if (drawable) {
					chart.replaceChildren(picture(data, areas));
				}
				keep(body, areas.map((q, k) => ({ q, k })), ({ q }) => q.name, newRow, (row, { q, k }) => updateRow(row, q, k, resource));
				keep(moments.querySelector("tr"), [{ name: "Time" }, ...areas], (q) => q.name, () => h("th", { scope: "col" }), (th, q) => {
					say(th, q.name);
					mark(th, "class", q.held ? "n name" : null);
				});
				const rows = data.times.map((time, i) => ({ time, i })).reverse();
				keep(moments.querySelector("tbody"), rows, (r) => r.time, () => h("tr"), (row, r) => keep(row, [null, ...areas], (q) => q?.name ?? "",
					(q) => (q === null ? h("th", { scope: "row" }) : h("td", { class: "n" })),
					(cell, q) => say(cell, q === null ? new Date(r.time).toLocaleTimeString("en-GB") : q.held[r.i] === null ? "–" : short(q.held[r.i]))));
			},
		};
	},
	follow(view, at) {
		view.parent = at.parameters.get("parent") ?? "";
		return true;
	},
};
