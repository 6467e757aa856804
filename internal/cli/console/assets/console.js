// What htmx and uPlot leave to us: draw the figures that the server sent, keep the end
// of a log in view, and let go of connections while nobody looks.
(function () {
  "use strict";

  // A browser opens six connections to a host. A tab that nobody sees gives back the one
  // that its page is kept up to date by, and takes it again when it is seen.
  function Source(url) {
    this.url = url;
    this.handlers = [];
    this.ended = false;
    this.open();
  }
  Source.prototype = {
    get readyState() { return this.inner ? this.inner.readyState : EventSource.CONNECTING; },
    open: function () {
      var self = this, inner = this.inner = new EventSource(this.url);
      inner.onopen = function (e) { document.body.classList.remove("cut"); if (self.onopen) self.onopen(e); };
      inner.onerror = function (e) { document.body.classList.add("cut"); if (self.onerror) self.onerror(e); };
      this.handlers.forEach(function (h) { inner.addEventListener(h[0], h[1]); });
    },
    addEventListener: function (name, f) { this.handlers.push([name, f]); if (this.inner) this.inner.addEventListener(name, f); },
    removeEventListener: function (name, f) {
      this.handlers = this.handlers.filter(function (h) { return h[0] !== name || h[1] !== f; });
      if (this.inner) this.inner.removeEventListener(name, f);
    },
    rest: function () { if (this.inner) { this.inner.close(); this.inner = null; } },
    wake: function () { if (!this.ended && !this.inner) this.open(); },
    close: function () { this.ended = true; this.rest(); }
  };
  var pages = [];
  htmx.createEventSource = function (url) {
    if (url.indexOf("/live/") !== 0) return new EventSource(url);
    var source = new Source(url);
    pages.push(source);
    return source;
  };
  document.addEventListener("visibilitychange", function () {
    pages.forEach(function (s) { if (document.hidden) s.rest(); else s.wake(); });
  });

  // Figures: the server sends times and values; the page has a place for each.
  var plots = {};
  function colours() {
    var style = getComputedStyle(document.documentElement);
    return ["--line-1", "--line-2", "--faint", "--rule"].map(function (n) { return style.getPropertyValue(n).trim(); });
  }
  // The axes: at least half a minute, the time of day, and whole replicas.
  var shortest = 30, whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  function clock(u, splits) {
    return splits.map(function (s) { return new Date(s * 1000).toLocaleTimeString("en-GB"); });
  }
  // A figure that came after the page did gets its place among the others.
  function hang(f) {
    var wall = document.querySelector(".plots");
    if (!wall) return null;
    var figure = wall.appendChild(document.createElement("figure"));
    var caption = figure.appendChild(document.createElement("figcaption"));
    caption.textContent = f.Title + (f.Unit ? ", " + f.Unit : "");
    var place = figure.appendChild(document.createElement("div"));
    place.className = "plot";
    place.id = "plot-" + f.ID;
    place.setAttribute("aria-hidden", "true");
    return place;
  }
  function draw() {
    var holder = document.querySelector("[data-figures]");
    if (!holder) return;
    var figures = JSON.parse(holder.dataset.figures) || [];
    var hung = figures.filter(function (f) { return !document.getElementById("plot-" + f.ID) && hang(f); }).length;
    if (hung) fit(); // those that were there have less room now
    figures.forEach(function (f) {
      var place = document.getElementById("plot-" + f.ID);
      if (!place) return;
      var data = [f.Times || []].concat(f.Series.map(function (s) { return s.Values || []; }));
      if (plots[f.ID]) { plots[f.ID].setData(data); return; }
      var c = colours();
      var axis = { stroke: c[2], grid: { stroke: c[3], width: 1 }, ticks: { stroke: c[3], width: 1 }, font: "11px system-ui, sans-serif" };
      plots[f.ID] = new uPlot({
        width: place.clientWidth || 300, height: 150, cursor: { drag: { x: false, y: false } }, legend: { live: false },
        scales: { x: { range: function (u, min, max) { return [Math.min(min, max - shortest), max]; } }, y: { range: function (u, min, max) { return [0, max > 0 ? max * 1.15 : 1]; } } },
        axes: [Object.assign({ values: clock, space: 64 }, axis), Object.assign({ size: 46 }, axis, f.Stepped ? { incrs: whole } : {})],
        series: [{}].concat(f.Series.map(function (s, i) {
          return { label: s.Name, stroke: c[i], width: 2, dash: [undefined, [5, 4], [2, 3]][i], paths: f.Stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: false }, spanGaps: true };
        }))
      }, data, place);
    });
  }
  function fit() {
    Object.keys(plots).forEach(function (id) {
      var place = document.getElementById("plot-" + id);
      if (place) plots[id].setSize({ width: place.clientWidth, height: 150 });
    });
  }
  window.addEventListener("resize", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    Object.keys(plots).forEach(function (id) { plots[id].destroy(); delete plots[id]; });
    draw();
  });
  draw();

  // A log is kept at its end and at a length that a browser carries.
  var longest = 4000;
  document.body.addEventListener("htmx:afterSettle", draw);
  document.body.addEventListener("htmx:sseMessage", function () {
    draw();
    var log = document.getElementById("log");
    if (!log) return;
    var lines = log.firstElementChild;
    while (lines.childElementCount > longest) lines.firstElementChild.remove();
    var follow = document.getElementById("follow");
    if (follow && follow.checked) log.scrollTop = log.scrollHeight;
  });

  // A question that was sent leaves the box; the next can be written at once.
  document.body.addEventListener("htmx:afterRequest", function (e) {
    var form = e.target.closest && e.target.closest("form.ask");
    if (form && e.detail.successful) form.querySelector("[name=question]").value = "";
  });
})();
