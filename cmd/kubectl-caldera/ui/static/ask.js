// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// ask asks the command for something. What it cannot answer is an error, in kubectl's words.
export async function ask(what, parameters = {}, signal = undefined) {
	const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
	let answer;
	try {
		answer = await fetch(`api/${what}?${query}`, { signal, cache: "no-store", credentials: "same-origin" });
	} catch (problem) {
		if (problem.name === "AbortError") {
			throw problem;
		}
		throw new Error("kubectl caldera ui does not answer: has it ended?");
	}
	const text = await answer.text();
	let data;
	try {
		data = JSON.parse(text);
	} catch {
		throw new Error(text.trim() || answer.statusText);
	}
	if (!answer.ok) {
		throw new Error(data.error);
	}
	return data;
}
