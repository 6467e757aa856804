package snapshot

// API names an optional API of the cluster by the kind that we use of it: by its
// CustomResourceDefinition, or as kubectl does where Kubernetes itself serves it.
type API string

const (
	APILeaderWorkerSet API = "leaderworkersets.leaderworkerset.x-k8s.io"
	APIVolcano         API = "podgroups.scheduling.volcano.sh"
	APIGrove           API = "podcliquesets.grove.io"
	APIKAI             API = "queues.scheduling.run.ai"
	APIIstio           API = "virtualservices.networking.istio.io"
	APIInference       API = "inferencepools.inference.networking.k8s.io"
	// APIDevices is Kubernetes' own, by which pods claim devices. It is served in this
	// version since 1.34.
	APIDevices API = "resourceclaimtemplates.v1.resource.k8s.io"
)

// APIs are all optional APIs that we know by their definitions.
var APIs = []API{APILeaderWorkerSet, APIVolcano, APIGrove, APIKAI, APIIstio, APIInference}

// Capabilities is the set of optional APIs that the cluster serves.
type Capabilities map[API]bool

// All reports whether every given API is served.
func (c Capabilities) All(apis ...API) bool {
	for _, api := range apis {
		if !c[api] {
			return false
		}
	}
	return true
}
