// A page that is read from the disk may neither start a worker nor fetch the index, but it may run
// scripts: here one takes the worker's place, and loads the index as a script when it is needed.
"use strict";
if (location.protocol === "file:") {
  const run = (path) => new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `${base_url}/search/${path}`;
    script.onload = done;
    script.onerror = () => failed(new Error(`${script.src} cannot be read`));
    document.head.append(script);
  });
  const load = async () => {
    await Promise.all([run("lunr.js"), run("search_index.js")]);
    lunr.tokenizer.separator = new RegExp(searchIndex.config.separator);
    const pages = new Map(searchIndex.docs.map((page) => [page.location, page]));
    const index = lunr(function () {
      this.field("title");
      this.field("text");
      this.ref("location");
      for (const page of pages.values()) this.add(page);
    });
    return (query) => index.search(query).map(({ ref }) => {
      const { location, title, text } = pages.get(ref);
      return { location, title, summary: text.substring(0, 200) };
    });
  };
  let search;
  window.Worker = class {
    async postMessage({ query }) {
      const answer = (data) => this.onmessage({ data });
      if (query === undefined) {
        // Where the question is typed in comes after the scripts.
        await new Promise((done) => document.addEventListener("DOMContentLoaded", done));
        answer({ config: { min_search_length: 3 } });
        answer({ allowSearch: true });
      } else {
        search ??= load();
        answer({ results: (await search)(query) });
      }
    }
  };
}
