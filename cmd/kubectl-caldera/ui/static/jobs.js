// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { ask } from "./ask.js";
import { chooser, h, jobLink, jobsLink, keep, mark, options, say } from "./dom.js";

const filters = ["namespace", "queue", "reason", "text", "waiting"];

// blank is a row without texts: copies of it are made faster than rows.
const blank = h("tr", {}, h("td", { class: "cut" }), h("th", { scope: "row", class: "cut" }, h("a")), h("td", { class: "cut" }, h("a")), h("td", { class: "n" }), h("td"),
	h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "cut" }), h("td", { class: "quiet cut" }));

function newRow() {
	const row = blank.cloneNode(true);
	const [namespace, name, queue, place, phase, pods, waits, reason, message] = row.children;
	row.cells_ = { namespace, name: name.firstChild, queue: queue.firstChild, place, phase, pods, waits, reason, message };
	return row;
}

function updateRow(row, j) {
	const c = row.cells_;
	say(c.namespace, j.namespace);
	say(c.name, j.name);
	mark(c.name, "title", j.name.length > 24 ? j.name : null);
	mark(c.name, "href", jobLink(j.namespace, j.name));
	say(c.queue, j.queue);
	mark(c.queue, "href", jobsLink({ queue: j.queue }));
	say(c.place, j.place || "–");
	say(c.phase, j.phase);
	say(c.pods, j.pods);
	say(c.waits, j.waits?.ago ?? "–");
	say(c.reason, j.reason || "–");
	say(c.message, j.message);
	mark(c.message, "title", j.message || null);
}

// chosen are the filters that an address has.
function chosen(parameters) {
	return Object.fromEntries(filters.map((name) => [name, parameters.get(name) ?? ""]).filter(([, value]) => value !== ""));
}

export const jobs = {
	name: "jobs",
	title: "Jobs",
	open(at, view) {
		view.chosen = chosen(at.parameters);
		// choose narrows the list down, and has the address say so. Only who has chosen from a list can go back to what was before.
		const choose = (name, value, replace) => {
			const next = { ...view.chosen, [name]: value };
			if (value === "") {
				delete next[name];
			}
			if (replace) {
				history.replaceState(null, "", jobsLink(next));
				view.chosen = next;
				view.again();
			} else {
				location.hash = jobsLink(next);
			}
		};
		const namespace = chooser("Namespace", (value) => choose("namespace", value));
		const queue = chooser("Queue", (value) => choose("queue", value));
		const reason = chooser("Reason", (value) => choose("reason", value));
		const text = h("input", { type: "search", oninput: () => choose("text", text.value, true), spellcheck: "false", autocomplete: "off" });
		const waiting = h("input", { type: "checkbox", onchange: () => choose("waiting", waiting.checked ? "yes" : "", true) });
		const count = h("span", { class: "count", role: "status" });
		const note = h("p", { class: "note" });
		const body = h("tbody");
		const heads = [["Namespace", "w8"], ["Job", "w14"], ["Queue", "w11"], ["Place", "n w6"], ["Phase", "w6"], ["Pods", "n w5"], ["Waits", "n w5"], ["Reason", "w14"], ["Message"]];
		const table = h("table", { class: "fixed" }, h("caption", { class: "hidden" }, "Jobs: those that wait first, in the order of their turns"),
			h("thead", {}, h("tr", {}, ...heads.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body);
		const scroll = h("div", { class: "scroll" }, table);
		const empty = h("p", { class: "empty", hidden: true });
		return {
			head: h("div", { class: "head" }, h("h1", {}, "Jobs"), count, h("div", { class: "fields" },
				h("label", {}, "Name", text), namespace.element, queue.element, reason.element, h("label", {}, waiting, "waiting only"))),
			body: h("div", {}, note, scroll, empty),
			ask: (signal) => ask("jobs", view.chosen, signal),
			update(data) {
				say(note, data.note);
				const now = view.chosen;
				say(count, data.found > data.jobs.length ? `the first ${data.jobs.length} of ${data.found}: narrow them down to see others` : `${data.found} of ${data.all}`);
				options(namespace.select, "all", data.namespaces, now.namespace);
				options(queue.select, "all", data.queues, now.queue);
				options(reason.select, "any", data.reasons, now.reason);
				if (document.activeElement !== text) {
					text.value = now.text ?? "";
				}
				waiting.checked = now.waiting !== undefined;
				say(empty, data.all === 0 ? "There are no jobs." : "There are no such jobs.");
				empty.hidden = data.jobs.length > 0;
				scroll.hidden = data.jobs.length === 0;
				keep(body, data.jobs, (j) => `${j.namespace}/${j.name}`, newRow, updateRow);
			},
		};
	},
	follow(view, at) {
		view.chosen = chosen(at.parameters);
		return true;
	},
};
