// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// All text of the page goes through textContent: names of jobs are what anybody likes.

const svgSpace = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on")) {
			element.addEventListener(name.slice(2), value);
		} else if (value !== null && value !== undefined && value !== false) {
			element.setAttribute(name, value === true ? "" : value);
		}
	}
	element.append(...children.flat().filter((c) => c !== null && c !== undefined));
	return element;
}

// h makes an element. Children are elements and texts.
export function h(name, attributes = {}, ...children) {
	return fill(document.createElement(name), attributes, children);
}

// s makes an element of a picture.
export function s(name, attributes = {}, ...children) {
	return fill(document.createElementNS(svgSpace, name), attributes, children);
}

// say writes a text, if it is another one: what is selected stays selected.
export function say(element, text) {
	text = text === null || text === undefined ? "" : String(text);
	if (element.textContent !== text) {
		element.textContent = text;
	}
}

// mark sets an attribute; it removes it for null and false.
export function mark(element, name, value) {
	if (value === null || value === undefined || value === false) {
		element.removeAttribute(name);
	} else if (element.getAttribute(name) !== String(value)) {
		element.setAttribute(name, value);
	}
}

// keep has the children of a parent be those of a list, in its order. What has a key that was there before is updated and stays the same element:
// focus, selections and what is open are left alone.
export function keep(parent, list, keyOf, make, update) {
	const before = parent.kept ?? new Map();
	const now = new Map();
	// What is new as a whole is put there at once.
	const whole = parent.firstElementChild === null ? [] : null;
	let place = parent.firstElementChild;
	for (const item of list) {
		const key = keyOf(item);
		let element = before.get(key);
		if (element === undefined || now.has(key)) {
			element = make(item);
		}
		update(element, item);
		now.set(key, element);
		if (whole) {
			whole.push(element);
		} else if (element === place) {
			place = place.nextElementSibling;
		} else {
			parent.insertBefore(element, place);
		}
	}
	if (whole) {
		parent.append(...whole);
	}
	while (place !== null) {
		const next = place.nextElementSibling;
		place.remove();
		place = next;
	}
	parent.kept = now;
}

// options has a select offer names with counts, and first all of them, if that has a name. What was chosen stays, even if there is none of it any more.
export function options(select, all, list, chosen) {
	const items = list.map((o) => ({ name: o.name, text: o.count === undefined ? o.name : `${o.name} (${o.count})` }));
	if (all !== null) {
		items.unshift({ name: "", text: all });
	}
	if (chosen && !list.some((o) => o.name === chosen)) {
		items.push({ name: chosen, text: chosen });
	}
	keep(select, items, (o) => o.name, (o) => h("option", { value: o.name }), (option, o) => say(option, o.text));
	if (document.activeElement !== select) {
		select.value = chosen ?? "";
	}
}

// number writes a number with at most one digit behind the point.
export function number(value) {
	return Number(value.toFixed(Math.abs(value) < 10 ? 1 : 0)).toLocaleString("en");
}

// times is a number of things.
export function times(n, what) {
	return n === 1 ? `1 ${what}` : `${n} ${what}s`;
}

// short writes a number in little room.
export function short(value) {
	for (const [unit, size] of [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20]]) {
		if (Math.abs(value) >= size) {
			return number(value / size) + unit;
		}
	}
	return number(value);
}

// clock is the time of day, with seconds where all that is shown took few minutes.
export function clock(time, all = Infinity) {
	return new Date(time).toLocaleTimeString("en-GB", all < 10 * 60 * 1000 ? {} : { hour: "2-digit", minute: "2-digit" });
}

// shortName is the last part of the name of a resource.
export function shortName(resource) {
	return resource.slice(resource.lastIndexOf("/") + 1);
}

// jobLink is where a job is shown.
export function jobLink(namespace, name) {
	return `#/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

// jobsLink is where jobs are listed, narrowed down.
export function jobsLink(parameters) {
	const query = new URLSearchParams(parameters).toString();
	return query ? `#/jobs?${query}` : "#/jobs";
}

// chooser is a select with a label, which tells what was chosen.
export function chooser(label, changed) {
	const select = h("select", { onchange: () => changed(select.value) });
	return { select, element: h("label", {}, label, select) };
}
