// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

import { h, mark, say, times } from "./dom.js";
import { ask } from "./ask.js";
import { evictions } from "./evictions.js";
import { fairness } from "./fairness.js";
import { job } from "./job.js";
import { jobs } from "./jobs.js";
import { nodes } from "./nodes.js";
import { queues } from "./queues.js";

// often is how often what is shown is asked for again, in milliseconds. gap is how many times as long as an answer takes is waited at least, longest
// how long at most.
const often = 3000;
const gap = 10;
const longest = 60000;

const views = { queues, jobs, evictions, nodes, fairness };
const main = document.getElementById("main");

// place is where the address says that the user is: a view, what is behind it, and parameters.
function place() {
	const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
	const [name, ...rest] = path.split("/").map(decodeURIComponent);
	return { name: Object.hasOwn(views, name) ? name : "queues", rest, parameters: new URLSearchParams(query ?? "") };
}

// shown is the view on the page, and what ends its questions.
let shown = null;

// refresh shows what is asked for again and again, until another view is shown.
async function refresh(view) {
	const started = performance.now();
	const { error, stop } = view;
	let failed = false;
	try {
		const data = await view.ask(stop.signal);
		if (shown !== view || view.stop !== stop) {
			return;
		}
		say(error, "");
		const received = performance.now();
		view.update(data);
		// After this frame it is on the screen.
		requestAnimationFrame(() => setTimeout(() => performance.measure("render:" + view.name, { start: received, end: performance.now() })));
		main.dataset.view = view.name;
		main.dataset.answers = String(Number(main.dataset.answers ?? 0) + 1);
	} catch (problem) {
		if (shown !== view || view.stop !== stop) {
			return;
		}
		failed = true;
		say(error, problem.message);
		main.dataset.view = view.name;
	}
	// What has failed may have taken long because nobody answered: that costs nothing, and may be over.
	const pause = failed ? often : Math.max(view.often ?? often, Math.min(gap * (performance.now() - started), longest));
	clearTimeout(view.timer);
	view.timer = setTimeout(() => refresh(view), document.hidden ? 10 * often : pause);
}

// show shows the view that the address names.
function show() {
	const at = place();
	const module = at.name === "jobs" && at.rest.length === 2 ? job : views[at.name];
	if (shown?.module === module && module.follow?.(shown, at)) {
		again();
		return;
	}
	if (shown) {
		shown.stop.abort();
		clearTimeout(shown.timer);
	}
	const first = shown === null;
	const view = { module, name: module.name, stop: new AbortController(), error: h("p", { class: "error", role: "alert" }), again };
	shown = view;
	delete main.dataset.view;
	delete main.dataset.answers;
	Object.assign(view, module.open(at, view));
	main.replaceChildren(view.head, view.error, view.body);
	document.title = `${module.title ?? at.rest.join("/")} – Caldera`;
	for (const link of document.querySelectorAll("nav a")) {
		mark(link, "aria-current", link.hash === `#/${at.name}` ? "page" : null);
	}
	if (!first) {
		// Who listens to the page is told that it is another one.
		main.focus({ preventScroll: true });
		scrollTo(0, 0);
	}
	refresh(view);
}

// again asks at once.
function again() {
	shown.stop.abort();
	shown.stop = new AbortController();
	clearTimeout(shown.timer);
	refresh(shown);
}

async function summarize() {
	const summary = document.getElementById("summary");
	let pause = 2 * often;
	try {
		const c = await ask("cluster");
		const parts = [`${c.waiting} waiting`, times(c.nodes, "node"), `${c.leader} leads${c.since ? ` since ${c.since.ago}` : ""}`];
		if (c.leftOut.length > 0) {
			parts.unshift(`${c.leftOut.length} left out`);
		}
		say(summary, parts.join(" · "));
		mark(summary, "title", [`Caldera ${c.version}`, ...c.reasons.map((r) => `${r.count} ${r.name}`), ...c.leftOut.map((q) => `${q.queue}: ${q.message}`)].join("\n"));
	} catch (problem) {
		// Who may not see the cluster may see jobs; what else is wrong is said there.
		say(summary, "");
		pause = 10 * often;
	}
	setTimeout(summarize, document.hidden ? 10 * often : pause);
}

const wanted = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");

function theme(chosen) {
	const now = chosen ?? (wanted.matches ? "dark" : "light");
	document.documentElement.dataset.theme = now;
	say(button, now === "dark" ? "Light" : "Dark");
	mark(button, "aria-label", now === "dark" ? "Light colours" : "Dark colours");
}

button.addEventListener("click", () => {
	const chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
	localStorage.setItem("theme", chosen);
	theme(chosen);
});
wanted.addEventListener("change", () => theme(localStorage.getItem("theme")));
theme(localStorage.getItem("theme"));

document.querySelector(".skip").addEventListener("click", (event) => {
	event.preventDefault();
	main.focus();
});
addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => document.hidden || again());
show();
summarize();
