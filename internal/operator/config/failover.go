package config

// Failover is what becomes of engines that stand by for each other in different pods.
type Failover struct {
	// DeleteCohorts has the operator delete the engines that cannot serve without one that
	// ended. Otherwise it deletes no pod.
	DeleteCohorts bool `json:"deleteCohorts,omitempty"`
}
