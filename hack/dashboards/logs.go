package main

// logs reads a graph's logs from Loki, by the labels that its pods carry.
var logs = dashboard{
	file: "logs", uid: "dynamo-logs", title: "Dynamo logs", tags: []string{"dynamo", "logs"}, source: "loki",
	variables: []variable{
		{"namespace", "label_values(namespace)"},
		{"graph", "label_values(nvidia_com_dynamo_graph_deployment_name)"},
		{"type", "label_values(nvidia_com_dynamo_component_type)"},
	},
	rows: []row{{"Logs", []panel{
		one("Lines a second", "short", `sum by (nvidia_com_dynamo_component_type) (rate({namespace=~"$namespace",nvidia_com_dynamo_graph_deployment_name=~"$graph",nvidia_com_dynamo_component_type=~"$type"}[1m]))`, "{{nvidia_com_dynamo_component_type}}"),
		one("Errors a second", "short", `sum by (nvidia_com_dynamo_component_type) (rate({namespace=~"$namespace",nvidia_com_dynamo_graph_deployment_name=~"$graph",nvidia_com_dynamo_component_type=~"$type"} |~ "(?i)error|traceback" [1m]))`, "{{nvidia_com_dynamo_component_type}}"),
		{title: "Lines", kind: "logs", queries: []query{{`{namespace=~"$namespace",nvidia_com_dynamo_graph_deployment_name=~"$graph",nvidia_com_dynamo_component_type=~"$type"}`, ""}}},
	}}},
}
