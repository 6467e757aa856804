package main

// operator shows how the operator itself is doing.
var operator = dashboard{
	file: "operator", uid: "dynamo-operator", title: "Dynamo operator", tags: []string{"dynamo", "operator", "kubernetes"}, source: "prometheus",
	variables: []variable{
		{"namespace", "label_values(dynamo_operator_reconcile_total, namespace)"},
		{"resource_type", "label_values(dynamo_operator_resources_total, resource_type)"},
	},
	rows: []row{
		{"Reconciles", []panel{
			one("Passes", "ops", `sum by (resource_type, result) (rate(dynamo_operator_reconcile_total{`+chosen+`}[5m]))`, "{{resource_type}} {{result}}"),
			one("Duration, p95", "s", `histogram_quantile(0.95, sum by (le, resource_type) (rate(dynamo_operator_reconcile_duration_seconds_bucket{`+chosen+`}[5m])))`, "{{resource_type}}"),
			one("Errors", "ops", `sum by (resource_type, error_type) (rate(dynamo_operator_reconcile_errors_total{`+chosen+`}[5m]))`, "{{resource_type}} {{error_type}}"),
			one("Passes without an error", "percent", `100 * sum(rate(dynamo_operator_reconcile_total{`+chosen+`,result!="error"}[5m])) / sum(rate(dynamo_operator_reconcile_total{`+chosen+`}[5m]))`, "ok"),
			one("Waiting in the queue", "short", `sum by (name) (workqueue_depth{name=~"dynamo.*"})`, "{{name}}"),
			one("Time in the queue, p95", "s", `histogram_quantile(0.95, sum by (le, name) (rate(workqueue_queue_duration_seconds_bucket{name=~"dynamo.*"}[5m])))`, "{{name}}"),
		}},
		{"Writes", []panel{
			one("Writes", "ops", `sum by (resource, verb) (rate(dynamo_operator_writes_total[5m]))`, "{{verb}} {{resource}}"),
			one("Requests to the API server", "reqps", `sum by (method, code) (rate(rest_client_requests_total[5m]))`, "{{method}} {{code}}"),
			one("From a graph's creation to ready, median", "s", `histogram_quantile(0.5, sum by (le) (rate(dynamo_operator_graph_time_to_ready_seconds_bucket[1h])))`, "p50"),
		}},
		{"Webhooks", []panel{
			one("Admissions", "ops", `sum by (resource_type, operation, result) (rate(dynamo_operator_webhook_requests_total[5m]))`, "{{operation}} {{resource_type}} {{result}}"),
			one("Duration, p95", "s", `histogram_quantile(0.95, sum by (le, resource_type) (rate(dynamo_operator_webhook_duration_seconds_bucket[5m])))`, "{{resource_type}}"),
			one("Denials", "ops", `sum by (resource_type, operation, reason) (rate(dynamo_operator_webhook_denials_total[5m]))`, "{{operation}} {{resource_type}} {{reason}}"),
		}},
		{"Inventory", []panel{
			one("Objects by state", "short", `sum by (resource_type, status) (dynamo_operator_resources_total{`+chosen+`})`, "{{resource_type}} {{status}}"),
			{title: "Objects", unit: "short", kind: "stat", queries: []query{{`sum by (resource_type) (dynamo_operator_resources_total{` + chosen + `})`, "{{resource_type}}"}}},
			one("Memory", "bytes", `process_resident_memory_bytes{job=~".*dynamo-operator.*"}`, "{{pod}}"),
		}},
		{"Rollouts", []panel{
			one("What serves over what has to", "short", `dynamo_operator_rollout_effective_replicas{namespace=~"$namespace"} - dynamo_operator_rollout_floor_replicas{namespace=~"$namespace"}`, "{{namespace}} {{graph}} {{service}}"),
			one("Rollouts by phase", "short", `sum by (phase) (dynamo_operator_rollout_phase{namespace=~"$namespace"})`, "{{phase}}"),
			one("Rollouts that ended, by result", "short", `sum by (namespace, result) (dynamo_operator_rollout_duration_seconds_count{namespace=~"$namespace"})`, "{{namespace}} {{result}}"),
		}},
	},
}

const chosen = `namespace=~"$namespace",resource_type=~"$resource_type"`
