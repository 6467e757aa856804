package main

// inference shows what the users of a graph feel.
var inference = dashboard{
	file: "inference", uid: "dynamo-dashboard", title: "Dynamo inference", tags: []string{"dynamo", "inference"}, source: "prometheus",
	variables: []variable{
		{"namespace", "label_values(dynamo_frontend_requests_total, namespace)"},
		{"model", "label_values(dynamo_frontend_requests_total, model)"},
	},
	rows: []row{
		{"Requests", []panel{
			one("Request rate", "reqps", `sum by (model, status) (rate(dynamo_frontend_requests_total{namespace=~"$namespace",model=~"$model"}[1m]))`, "{{model}} {{status}}"),
			one("Under way", "short", `sum by (model) (dynamo_frontend_inflight_requests{namespace=~"$namespace",model=~"$model"})`, "{{model}}"),
			one("Waiting for a first token", "short", `sum by (model) (dynamo_frontend_queued_requests{namespace=~"$namespace",model=~"$model"})`, "{{model}}"),
		}},
		{"Latency", []panel{
			latency("Time to first token", "time_to_first_token_seconds"),
			latency("Time between tokens", "inter_token_latency_seconds"),
			latency("Whole request", "request_duration_seconds"),
		}},
		{"Tokens", []panel{
			one("Output tokens a second", "short", `sum by (model) (rate(dynamo_frontend_output_tokens_total{namespace=~"$namespace",model=~"$model"}[1m]))`, "{{model}}"),
			mean("Length of prompts", "input_sequence_tokens"),
			mean("Length of answers", "output_sequence_tokens"),
		}},
		{"Workers", []panel{
			{title: "Sequences in the batch", unit: "short", queries: byEngine("num_requests_running", "num_running_reqs", "num_requests_running")},
			{title: "Sequences in line", unit: "short", queries: byEngine("num_requests_waiting", "num_queue_reqs", "num_requests_waiting")},
			{title: "Key-value cache in use", unit: "percentunit", queries: byEngine("kv_cache_usage_perc", "token_usage", "kv_cache_utilization")},
			one("Requests by component", "reqps", `sum by (dynamo_component) (rate(dynamo_component_requests_total{namespace=~"$namespace"}[1m]))`, "{{dynamo_component}}"),
			one("Errors by component", "reqps", `sum by (dynamo_component, error_type) (rate(dynamo_component_errors_total{namespace=~"$namespace"}[5m]))`, "{{dynamo_component}} {{error_type}}"),
			one("Workers that answer, by component", "short", `count by (dynamo_namespace, dynamo_component) (dynamo_component_uptime_seconds{namespace=~"$namespace"})`, "{{dynamo_namespace}} {{dynamo_component}}"),
		}},
		{"GPUs", []panel{
			one("Utilisation", "percent", `avg by (Hostname, gpu) (DCGM_FI_DEV_GPU_UTIL)`, "{{Hostname}} {{gpu}}"),
			one("Power", "watt", `sum by (Hostname) (DCGM_FI_DEV_POWER_USAGE)`, "{{Hostname}}"),
			one("Memory in use", "decmbytes", `sum by (Hostname, gpu) (DCGM_FI_DEV_FB_USED)`, "{{Hostname}} {{gpu}}"),
		}},
	},
}

// latency shows the median and the tail of one of the frontend's histograms.
func latency(title, metric string) panel {
	quantile := func(q string) query {
		return query{`histogram_quantile(` + q + `, sum by (le, model) (rate(dynamo_frontend_` + metric + `_bucket{namespace=~"$namespace",model=~"$model"}[1m])))`, "{{model}} p" + q[2:]}
	}
	return panel{title: title, unit: "s", queries: []query{quantile("0.50"), quantile("0.95"), quantile("0.99")}}
}

// mean shows the mean of one of the frontend's histograms.
func mean(title, metric string) panel {
	rate := func(part string) string {
		return `sum by (model) (rate(dynamo_frontend_` + metric + part + `{namespace=~"$namespace",model=~"$model"}[1m]))`
	}
	return one(title, "short", rate("_sum")+" / "+rate("_count"), "{{model}}")
}

// byEngine asks every engine under the name that it gives to the same thing.
func byEngine(vllm, sglang, trtllm string) []query {
	ask := func(name string) query {
		return query{`avg by (pod) ({__name__="` + name + `",namespace=~"$namespace"})`, "{{pod}}"}
	}
	return []query{ask("vllm:" + vllm), ask("sglang:" + sglang), ask("trtllm_" + trtllm)}
}
