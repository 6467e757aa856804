package apply

import (
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

func TestSettled(t *testing.T) {
	const desired = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: n, labels: {app: a}}
spec:
  replicas: 2
  template:
    spec:
      initContainers: [{name: fetch}, {name: unpack}]
      containers:
      - name: main
        image: rt:1
        args: [--model, m]
        resources: {}
        ports: [{containerPort: 9090, name: system}]
      volumes: [{name: shm, emptyDir: {}}]
`
	const record = `{
"f:metadata":{"f:labels":{"f:app":{}}},
"f:spec":{"f:replicas":{},"f:template":{"f:spec":{
  "f:initContainers":{"k:{\"name\":\"fetch\"}":{".":{},"f:name":{}},"k:{\"name\":\"unpack\"}":{".":{},"f:name":{}}},
  "f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},"f:resources":{},
    "f:ports":{"k:{\"containerPort\":9090,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{}}}}},
  "f:volumes":{"k:{\"name\":\"shm\"}":{".":{},"f:name":{},"f:emptyDir":{}}}}}}}`
	const live = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: n, uid: u, labels: {app: a, other: theirs}}
spec:
  replicas: 2
  progressDeadlineSeconds: 600
  template:
    spec:
      restartPolicy: Always
      initContainers: [{name: fetch}, {name: injected}, {name: unpack}]
      containers:
      - {name: injected, image: mesh}
      - name: main
        image: rt:1
        args: [--model, m]
        imagePullPolicy: IfNotPresent
        resources: {}
        ports: [{containerPort: 9090, name: system, protocol: TCP}]
      volumes: [{name: shm, emptyDir: {}}]
`
	cases := map[string]struct {
		desired, live [2]string // what to replace by what
		want          bool
	}{
		"defaults, and fields and items of others, call for no write": {want: true},
		"a value that somebody changed is written again":              {live: [2]string{"replicas: 2", "replicas: 3"}},
		"a value that we want changed is written":                     {desired: [2]string{"rt:1", "rt:2"}},
		"a field that we want and do not own is written":              {desired: [2]string{"image: rt:1", "image: rt:1\n        workingDir: /w"}},
		"a field that we own and no longer want is removed":           {desired: [2]string{"        args: [--model, m]\n", ""}},
		"a label that we no longer want is removed":                   {desired: [2]string{", labels: {app: a}", ""}},
		"an item that we want and do not own is written":              {desired: [2]string{"volumes: [", "volumes: [{name: more, emptyDir: {}}, "}},
		"an item that we own and no longer want is removed":           {desired: [2]string{"      volumes: [{name: shm, emptyDir: {}}]\n", ""}},
		"an item that somebody removed is written again":              {live: [2]string{"      volumes: [{name: shm, emptyDir: {}}]\n", ""}},
		"an argument that somebody added is taken away":               {live: [2]string{"[--model, m]", "[--model, m, --more]"}},
		"items that we want in another order are written":             {desired: [2]string{"{name: fetch}, {name: unpack}", "{name: unpack}, {name: fetch}"}},
		"items that somebody put into another order are written":      {live: [2]string{"{name: fetch}, {name: injected}, {name: unpack}", "{name: unpack}, {name: injected}, {name: fetch}"}},
		"a port's defaulted protocol is no difference":                {live: [2]string{", protocol: TCP", ", protocol: TCP, hostPort: 1"}, want: true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			set := &fieldpath.Set{}
			if err := set.FromJSON(strings.NewReader(record)); err != nil {
				t.Fatal(err)
			}
			got := upToDate(object(t, desired, c.desired), object(t, live, c.live), set)
			if got != c.want {
				t.Errorf("settled = %v, want %v", got, c.want)
			}
		})
	}
}

func object(t *testing.T, text string, replace [2]string) map[string]any {
	t.Helper()
	if replace[0] != "" {
		if !strings.Contains(text, replace[0]) {
			t.Fatalf("%q is not in the object", replace[0])
		}
		text = strings.Replace(text, replace[0], replace[1], 1)
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
