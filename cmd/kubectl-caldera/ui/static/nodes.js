// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { ask } from "./ask.js";
import { chooser, h, keep, mark, number, options, say, short, shortName, times } from "./dom.js";

function newCell() {
	const cell = h("li", {}, h("i", { "aria-hidden": "true" }), h("span", { "aria-hidden": "true" }), h("span", { class: "hidden" }));
	return cell;
}

function updateCell(cell, n, resource) {
	const [level, free, words] = cell.children;
	const part = n.allocatable.value > 0 ? n.free.value / n.allocatable.value : 0;
	level.style.height = `${100 * part}%`;
	say(free, n.problem ? "×" : short(n.free.value));
	const text = `${n.name}: ${n.free.text} of ${n.allocatable.text} ${shortName(resource)} free${n.problem ? `, ${n.problem}` : ""}`;
	say(words, text);
	mark(cell, "title", text);
	mark(cell, "class", n.problem ? "trouble" : null);
}

function newRow() {
	const row = h("tr");
	row.cells_ = { name: h("th", { scope: "row", class: "name" }), free: h("td", { class: "n" }), all: h("td", { class: "n" }), pods: h("td", { class: "n" }), problem: h("td", { class: "wrap" }) };
	row.append(...Object.values(row.cells_));
	return row;
}

function updateRow(row, n) {
	const c = row.cells_;
	say(c.name, n.name);
	say(c.free, n.free.text);
	say(c.all, n.allocatable.text);
	say(c.pods, n.pods);
	say(c.problem, n.problem || "–");
}

export const nodes = {
	name: "nodes",
	title: "Nodes",
	open(_, view) {
		let resource = "";
		const choose = chooser("Resource", (value) => {
			resource = value;
			view.again();
		});
		const count = h("span", { class: "count" });
		const strip = h("ul", { class: "strip", "aria-label": "What is free on each node" });
		const body = h("tbody");
		const heads = [["Node"], ["Free", "n"], ["Allocatable", "n"], ["Pods", "n"], ["Takes no pods"]];
		const table = h("div", { class: "scroll" }, h("table", { class: "small" }, h("caption", { class: "hidden" }, "Nodes by name"),
			h("thead", {}, h("tr", {}, ...heads.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body));
		const sizes = h("p", { class: "note" });
		const empty = h("p", { class: "empty", hidden: true }, "There are no nodes.");
		return {
			head: h("div", { class: "head" }, h("h1", {}, "Nodes"), count, h("div", { class: "fields" }, choose.element)),
			body: h("div", {}, sizes, strip, table, empty),
			often: 6000,
			ask: (signal) => ask("nodes", { resource }, signal),
			update(data) {
				// Nodes without devices are in the table only.
				const having = data.nodes.filter((n) => n.allocatable.value > 0);
				const free = data.nodes.reduce((sum, n) => sum + (n.problem ? 0 : n.free.value), 0);
				const all = data.nodes.reduce((sum, n) => sum + n.allocatable.value, 0);
				say(count, `${times(data.nodes.length, "node")}, ${short(free)} of ${short(all)} ${shortName(data.resource)} free`);
				options(choose.select, null, data.resources.map((name) => ({ name })), resource || data.resource);
				say(sizes, spread(having, data.resource));
				empty.hidden = data.nodes.length > 0;
				table.hidden = strip.hidden = sizes.hidden = data.nodes.length === 0;
				keep(strip, having, (n) => n.name, newCell, (cell, n) => updateCell(cell, n, data.resource));
				keep(body, data.nodes, (n) => n.name, newRow, updateRow);
			},
		};
	},
	follow: () => true,
};

// spread is on how many nodes how much of a device is free: whether there is room for pods that ask for many at once.
function spread(nodes, resource) {
	if (!resource.includes("/")) {
		return "";
	}
	const counts = new Map();
	for (const n of nodes.filter((n) => !n.problem)) {
		counts.set(n.free.value, (counts.get(n.free.value) ?? 0) + 1);
	}
	return [...counts].sort((a, b) => b[0] - a[0]).map(([free, n]) => `${times(n, "node")} with ${number(free)} free`).join(" · ");
}
