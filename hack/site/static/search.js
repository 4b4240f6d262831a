// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// The search of the site: sections in which all words occur, those first that have them in their headings. Its index is fetched when somebody searches.
const root = document.currentScript.dataset.root;
const most = 12;
const field = document.getElementById("search");
const list = document.getElementById("found");
let chosen = -1;
let index;

// On a small screen the menu is closed at first.
if (matchMedia("(max-width: 760px)").matches) document.querySelector(".menu").open = false;
// The menu shows where the page is in it.
const menu = document.querySelector(".menu nav");
menu.scrollTop = (menu.querySelector("[aria-current]")?.offsetTop ?? 0) - menu.clientHeight / 2;

function load() {
	index ??= new Promise((resolve, reject) => {
		const script = document.createElement("script");
		script.src = root + "static/index.js";
		script.onload = () => resolve(sections.map((s) => ({ ...s, inHeading: `${s.page} ${s.heading}`.toLowerCase(), inText: s.text.toLowerCase() })));
		script.onerror = reject;
		document.head.append(script);
	});
	return index;
}

// weigh is how well a section fits; 0 if a word is missing.
function weigh(section, words) {
	let sum = 0;
	for (const word of words) {
		const heading = section.inHeading.includes(word);
		if (!heading && !section.inText.includes(word)) return 0;
		sum += heading ? 10 : 1;
	}
	return sum;
}

// around is the text of a section where a word occurs first.
function around(section, words) {
	const at = Math.max(0, Math.min(...words.map((w) => section.inText.indexOf(w)).filter((i) => i >= 0), section.text.length) - 40);
	const begin = at && section.text.indexOf(" ", at) + 1;
	return (begin ? "… " : "") + section.text.slice(begin, begin + 130);
}

function element(tag, name, text) {
	const e = document.createElement(tag);
	e.className = name;
	e.textContent = text;
	return e;
}

function row(section, words, i) {
	const li = document.createElement("li");
	li.id = `found-${i}`;
	li.setAttribute("role", "option");
	li.setAttribute("aria-selected", "false");
	const a = document.createElement("a");
	a.href = root + section.url;
	a.tabIndex = -1;
	a.append(element("strong", "", section.heading));
	if (section.heading !== section.page) a.append(element("span", "page", ` in ${section.page}`));
	a.append(element("span", "text", around(section, words)));
	li.append(a);
	return li;
}

async function search() {
	const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
	if (!words.length) return close();
	const fitting = (await load()).map((s) => [weigh(s, words), s]).filter(([w]) => w > 0);
	fitting.sort(([a], [b]) => b - a);
	chosen = -1;
	field.removeAttribute("aria-activedescendant");
	list.replaceChildren(...fitting.slice(0, most).map(([, s], i) => row(s, words, i)));
	if (!fitting.length) list.append(element("li", "none", "No section has all of these words."));
	list.hidden = false;
	field.setAttribute("aria-expanded", "true");
}

function close() {
	list.hidden = true;
	field.setAttribute("aria-expanded", "false");
}

function choose(i) {
	const rows = list.querySelectorAll("[role=option]");
	if (!rows.length) return;
	rows[chosen]?.setAttribute("aria-selected", "false");
	chosen = (i + rows.length) % rows.length;
	rows[chosen].setAttribute("aria-selected", "true");
	rows[chosen].scrollIntoView({ block: "nearest" });
	field.setAttribute("aria-activedescendant", rows[chosen].id);
}

field.addEventListener("input", search);
field.addEventListener("focus", search);
field.addEventListener("keydown", (e) => {
	if (e.key === "ArrowDown") choose(chosen + 1);
	else if (e.key === "ArrowUp") choose(chosen - 1);
	else if (e.key === "Escape") close();
	else return;
	e.preventDefault();
});
field.form.addEventListener("submit", (e) => {
	e.preventDefault();
	list.querySelectorAll("[role=option] a")[Math.max(0, chosen)]?.click();
});
document.addEventListener("keydown", (e) => {
	if (e.key === "/" && document.activeElement !== field) {
		e.preventDefault();
		field.focus();
	}
});
document.addEventListener("click", (e) => {
	if (!field.form.contains(e.target) || e.target.closest("#found a")) close();
});
