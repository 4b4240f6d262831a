// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { ask } from "./ask.js";
import { h, jobsLink, keep, mark, say } from "./dom.js";

// mostSquares is how many pods are drawn: beyond that the counts say more.
const mostSquares = 256;

const kinds = [
	["running", "runs", "run"], ["bound", "bound", "have a node and do not run yet"], ["succeeded", "ended", "succeeded"], ["failed", "failed", "failed"],
	["terminating", "ended", "terminate"], ["pending", "waits", "have no node"],
];

export const job = {
	name: "job",
	open(at, view) {
		const [namespace, name] = at.rest;
		const headline = h("h1", {}, name);
		const facts = h("dl", { class: "facts" });
		const squares = h("div", { class: "pods", "aria-hidden": "true" });
		const podRows = h("tbody");
		const resourceRows = h("tbody");
		const resources = h("section", { hidden: true }, h("h2", {}, "What its pods ask for"), h("table", { class: "small" },
			h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Resource"), h("th", { scope: "col", class: "n" }, "Held"), h("th", { scope: "col", class: "n" }, "Missing"))), resourceRows));
		const result = h("div", { class: "remedies", role: "status", hidden: true });
		const button = h("button", { type: "button", class: "main", onclick: () => find(namespace, name, button, result, view) }, "What would have it start?");
		const whatIf = h("section", { hidden: true, "aria-label": "What would have it start" },
			h("h2", {}, "What would have it start"), h("p", { class: "note" },
				"The objects of the cluster are read, and the real scheduler plans on them in the memory of this machine. It takes some seconds."),
			h("p", {}, button), result);
		const list = h("a", { href: jobsLink({}) }, "all jobs");
		return {
			head: h("div", { class: "head" }, headline, h("span", { class: "count" }, list)),
			body: h("div", {}, facts, h("div", { class: "pair" }, h("section", {}, h("h2", {}, "Pods"), squares, h("table", { class: "small" },
				h("caption", { class: "hidden" }, "How many pods are how"), h("thead", { class: "hidden" }, h("tr", {}, h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Pods"))), podRows)), resources), whatIf),
			ask: (signal) => ask("job", { namespace, name }, signal),
			update(data) {
				say(headline, data.headline);
				say(list, `jobs of queue ${data.queue}`);
				mark(list, "href", jobsLink({ queue: data.queue }));
				keep(facts, data.facts.flatMap((f) => [{ name: f.name }, f]), (f) => (f.texts ? "text " : "name ") + f.name,
					(f) => h(f.texts ? "dd" : "dt"),
					(element, f) => (f.texts
						? keep(element, f.texts.map((text, i) => ({ text, i })), (t) => t.i, () => h("p"), (p, t) => say(p, t.text))
						: say(element, f.name)));
				drawPods(squares, data.pods);
				const counts = [["all", data.pods.total], ...kinds.map(([key, , text]) => [text, data.pods[key] ?? 0]).filter(([, n]) => n > 0)];
				if (data.pods.gated > 0) {
					counts.push(["carry scheduling gates", data.pods.gated]);
				}
				counts.push(["start together or not at all", data.min]);
				keep(podRows, counts, ([text]) => text, ([text]) => h("tr", {}, h("th", { scope: "row" }, text), h("td", { class: "n" })), (row, [, n]) => say(row.lastElementChild, n));
				resources.hidden = data.resources.length === 0;
				keep(resourceRows, data.resources, (r) => r.name,
					(r) => h("tr", {}, h("th", { scope: "row" }, r.name), h("td", { class: "n" }), h("td", { class: "n" })),
					(row, r) => {
						say(row.children[1], r.held);
						say(row.children[2], r.missing);
					});
				whatIf.hidden = !data.waiting;
			},
		};
	},
	// Another job is another page.
	follow: () => false,
};

function drawPods(squares, pods) {
	const all = kinds.flatMap(([key, kind]) => Array(pods[key] ?? 0).fill(kind));
	keep(squares, all.slice(0, mostSquares).map((kind, i) => ({ kind, i })), (p) => p.i, () => h("i"), (i, p) => mark(i, "class", p.kind));
}

// find asks what would have a job start. It takes long, and goes on while the page is refreshed.
async function find(namespace, name, button, result, view) {
	if (button.getAttribute("aria-disabled") === "true") {
		return;
	}
	mark(button, "aria-disabled", "true");
	say(button, "Planning …");
	let content;
	try {
		content = tell(await ask("whatif", { namespace, name }));
	} catch (problem) {
		content = [h("p", { class: "bad" }, problem.message)];
	}
	result.replaceChildren(...content);
	result.hidden = false;
	mark(button, "aria-disabled", null);
	say(button, "Plan again");
}

function tell(found) {
	if (found.unknown) {
		return [h("p", {}, found.unknown)];
	}
	const content = [];
	if (found.impossible) {
		content.push(h("h3", {}, "No node here can hold it, however empty"), h("p", {}, found.impossible));
	}
	content.push(h("h3", {}, found.heading.charAt(0) + found.heading.slice(1).replace(/^[A-Z ]+/, (words) => words.toLowerCase())));
	if (found.remedies.length > 0) {
		content.push(h("table", {}, h("tbody", {}, ...found.remedies.map((r) => h("tr", {}, h("th", { scope: "row" }, r.kind), h("td", {}, r.text))))));
	}
	return content;
}
