package main

// dashboard is what we have to say; grafana() adds what Grafana wants to hear.
type dashboard struct {
	file, uid, title string
	tags             []string
	source           string // the type of its datasource
	variables        []variable
	rows             []row
}

// variable is a choice at the top of a dashboard, over the values of a label.
type variable struct{ name, query string }

type row struct {
	title  string
	panels []panel
}

// panel is a picture of one or several queries.
type panel struct {
	title, unit string
	kind        string // timeseries unless given
	queries     []query
}

// query is an expression and the legend of its series.
type query struct{ expr, legend string }

// one is the common case of a panel with one query.
func one(title, unit, expr, legend string) panel {
	return panel{title: title, unit: unit, queries: []query{{expr, legend}}}
}

const width, height = 8, 8 // three panels a row on Grafana's grid of 24

type object = map[string]any

func (d dashboard) grafana() object {
	source := object{"type": d.source, "uid": "${datasource}"}
	var panels []object
	id, y := 0, 0
	for _, r := range d.rows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []any{}, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}})
		y++
		for i, p := range r.panels {
			id++
			place := object{"h": height, "w": width, "x": i % 3 * width, "y": y + i/3*height}
			panels = append(panels, p.grafana(id, source, place))
		}
		y += (len(r.panels) + 2) / 3 * height
	}
	return object{
		"uid": d.uid, "title": d.title, "tags": d.tags, "schemaVersion": 39, "version": 1, "editable": true,
		"refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"templating": object{"list": d.templating(source)}, "annotations": object{"list": []any{}}, "panels": panels,
	}
}

func (d dashboard) templating(source object) []object {
	list := []object{{"name": "datasource", "label": "Source", "type": "datasource", "query": d.source}}
	for _, v := range d.variables {
		list = append(list, object{
			"name": v.name, "type": "query", "datasource": source, "query": v.query, "refresh": 2,
			"includeAll": true, "multi": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		})
	}
	return list
}

func (p panel) grafana(id int, source, place object) object {
	kind := p.kind
	if kind == "" {
		kind = "timeseries"
	}
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend})
	}
	return object{
		"id": id, "type": kind, "title": p.title, "datasource": source, "gridPos": place, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit}, "overrides": []any{}},
	}
}
