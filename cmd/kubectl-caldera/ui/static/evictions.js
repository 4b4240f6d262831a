// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { ask } from "./ask.js";
import { clock, h, jobLink, keep, mark, s, say, times } from "./dom.js";

const left = 150;
const lane = 26;
const mostLanes = 12;
const width = 1200;

// lanes are the queues that decisions took from or were for; beyond the first ones they share the last lane.
function lanesOf(decisions) {
	const counts = new Map();
	for (const d of decisions) {
		for (const queue of [...d.from, d.for?.queue].filter((q) => q !== undefined)) {
			counts.set(queue, (counts.get(queue) ?? 0) + 1);
		}
	}
	const names = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
	if (names.length <= mostLanes) {
		return { names: names.sort(), of: (queue) => names.indexOf(queue) };
	}
	const shown = [...names.slice(0, mostLanes - 1).sort(), `${names.length - mostLanes + 1} others`];
	return { names: shown, of: (queue) => (shown.indexOf(queue) < 0 ? mostLanes - 1 : shown.indexOf(queue)) };
}

// picture shows each decision as a line from the queues that lost pods to the one that got the room, at its time.
function picture(decisions) {
	const lanes = lanesOf(decisions);
	const height = lanes.names.length * lane + 26;
	const moments = decisions.map((d) => Date.parse(d.when.at));
	const first = Math.min(...moments);
	const last = Math.max(...moments);
	const x = (time) => (last === first ? (left + width) / 2 : left + 12 + ((time - first) / (last - first)) * (width - left - 24));
	const y = (queue) => lanes.of(queue) * lane + lane / 2;
	const lines = lanes.names.flatMap((name, i) => [
		s("line", { class: "grid", x1: left, x2: width, y1: i * lane + lane / 2, y2: i * lane + lane / 2 }),
		s("text", { x: left - 10, y: i * lane + lane / 2 + 4, "text-anchor": "end" }, name.length > 22 ? `${name.slice(0, 21)}…` : name),
	]);
	const marks = decisions.map((d, i) => {
		const at = x(moments[i]);
		const ends = [...d.from, ...(d.for ? [d.for.queue] : [])].map(y);
		return s("g", { class: d.outcome === "Wasted" ? "wasted" : null },
			s("line", { class: "taking", x1: at, x2: at, y1: Math.min(...ends), y2: Math.max(...ends) }),
			...d.from.map((queue) => s("circle", { class: "lost", cx: at, cy: y(queue), r: d.from.length === 1 && queue === d.for?.queue ? 5.5 : 3.5 })),
			d.for ? s("circle", { class: "got", cx: at, cy: y(d.for.queue), r: 3.5 }) : null);
	});
	const ticks = last === first ? [first] : [0, 0.25, 0.5, 0.75, 1].map((part) => first + part * (last - first));
	return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Evictions over time, from queue to queue. The table has the same." },
		...lines, ...marks, ...ticks.map((t, i) => s("text", { x: x(t), y: height - 4, "text-anchor": i === 0 && ticks.length > 1 ? "start" : i === ticks.length - 1 && i > 0 ? "end" : "middle" }, clock(t, last - first))));
}

function newRow(d) {
	const row = h("tr");
	const c = {
		when: h("th", { scope: "row" }), action: h("td"), job: h("td", { class: "cut" }), queue: h("td", { class: "cut" }), from: h("td", { class: "cut" }),
		evicted: h("td", { class: "n" }), outcome: h("td"), rule: h("td", { class: "wrap" }),
	};
	c.summary = h("summary");
	c.inner = h("div", { class: "inner" });
	c.rule.append(h("details", { class: "rows" }, c.summary, c.inner));
	if (d.for) {
		c.job.append(h("a", { href: jobLink(d.for.namespace, d.for.name) }, `${d.for.namespace}/${d.for.name}`));
	} else {
		say(c.job, "nobody");
	}
	say(c.queue, d.for?.queue ?? "–");
	row.cells_ = c;
	row.append(c.when, c.action, c.job, c.queue, c.from, c.evicted, c.outcome, c.rule);
	return row;
}

function updateRow(row, d) {
	const c = row.cells_;
	say(c.when, `${d.when.ago} ago`);
	mark(c.when, "title", new Date(d.when.at).toLocaleString("en-GB"));
	say(c.action, d.action);
	say(c.from, d.from.join(", "));
	mark(c.from, "title", d.from.join(", "));
	say(c.evicted, d.evicted);
	say(c.outcome, d.took ? `${d.outcome} after ${d.took}` : d.outcome);
	mark(c.outcome, "class", d.outcome === "Wasted" ? "bad" : null);
	say(c.summary, d.rules.join("; ") || (d.others === 1 ? "1 pod of another namespace" : `${d.others} pods of other namespaces`));
	const lines = [d.problem, d.others > 0 ? `${d.others} more of other namespaces` : "", ...d.kept.map((k) => `${k.pods} kept: ${k.reason}`)].filter((line) => line);
	keep(c.inner, [{ key: "victims" }, ...lines.map((text, i) => ({ key: i, text }))], (l) => l.key, (l) => (l.key === "victims" ? newVictims() : h("p")),
		(element, l) => (l.key === "victims" ? updateVictims(element, d.victims) : say(element, l.text)));
}

function newVictims() {
	const heads = ["Victim", "Job", "Queue", "Node", "State", "Rule"].map((name) => h("th", { scope: "col" }, name));
	return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody")));
}

function updateVictims(element, victims) {
	keep(element.querySelector("tbody"), victims, (v) => `${v.namespace}/${v.name}`,
		(v) => h("tr", {}, h("th", { scope: "row" }, `${v.namespace}/${v.name}`),
			h("td", {}, h("a", { href: jobLink(v.job.namespace, v.job.name) }, v.job.name)), h("td", {}, v.job.queue), h("td"), h("td"), h("td", { class: "wrap" })),
		(row, v) => [v.node, v.state, v.rule].forEach((text, i) => say(row.children[i + 3], text)));
}

export const evictions = {
	name: "evictions",
	title: "Evictions",
	open() {
		const count = h("span", { class: "count" });
		const note = h("p", { class: "note" });
		const chart = h("div");
		const body = h("tbody");
		const heads = [["When", "w8"], ["Action", "w6"], ["For", "w18"], ["Queue", "w11"], ["From", "w11"], ["Evicted", "n w5"], ["Outcome", "w11"], ["Rule"]];
		const table = h("div", { class: "scroll" }, h("table", { class: "fixed" }, h("caption", { class: "hidden" }, "Decisions to evict, the newest first"),
			h("thead", {}, h("tr", {}, ...heads.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body));
		const key = h("ul", { class: "key" }, h("li", {}, "○ lost pods"), h("li", {}, "● got the room"), h("li", { class: "bad" }, "red: the job did not start then"));
		const empty = h("p", { class: "empty", hidden: true }, "No evictions are remembered.");
		let drawn = "";
		return {
			head: h("div", { class: "head" }, h("h1", {}, "Evictions"), count),
			body: h("div", {}, note, chart, key, table, empty),
			ask: (signal) => ask("evictions", {}, signal),
			update(data) {
				say(note, data.note);
				const pods = data.decisions.reduce((sum, d) => sum + d.victims.length + d.others, 0);
				say(count, `${times(data.decisions.length, "decision")}, ${times(pods, "pod")}`);
				const none = data.decisions.length === 0;
				empty.hidden = !none;
				table.hidden = key.hidden = chart.hidden = none;
				const now = JSON.stringify(data.decisions.map((d) => [d.id, d.outcome]));
				if (!none && now !== drawn) {
					chart.replaceChildren(picture(data.decisions));
					drawn = now;
				}
				keep(body, data.decisions, (d) => d.id, newRow, updateRow);
			},
		};
	},
	follow: () => true,
};
