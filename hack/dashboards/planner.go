package main

// planner shows what a planner saw, expected and decided.
var planner = dashboard{
	file: "planner", uid: "dynamo-planner-dashboard", title: "Dynamo planner", tags: []string{"dynamo", "planner"}, source: "prometheus",
	variables: []variable{{"namespace", `label_values({__name__="planner:num_p_workers"}, namespace)`}},
	rows: []row{
		{"Decided", []panel{
			pair("Workers", "short", "num_p_workers", "num_d_workers"),
			pair("Workers expected to be needed", "short", "predicted_num_p", "predicted_num_d"),
			pair("GPU hours", "h", "gpu_hours"),
		}},
		{"Seen", []panel{
			pair("Time to first token", "ms", "observed_ttft"),
			pair("Time between tokens", "ms", "observed_itl"),
			pair("Request duration", "s", "observed_request_duration"),
			pair("Request rate, seen and expected", "reqps", "observed_request_rate", "predicted_request_rate"),
			pair("Length of prompts, seen and expected", "short", "observed_isl", "predicted_isl"),
			pair("Length of answers, seen and expected", "short", "observed_osl", "predicted_osl"),
		}},
		{"Trust", []panel{pair("Correction of the profile", "short", "p_correction_factor", "d_correction_factor")}},
	},
}

func pair(title, unit string, gauges ...string) panel {
	p := panel{title: title, unit: unit}
	for _, gauge := range gauges {
		p.queries = append(p.queries, query{`sum by (namespace) ({__name__="planner:` + gauge + `",namespace=~"$namespace"})`, "{{namespace}} " + gauge})
	}
	return p
}
