package v1alpha1

// ServiceTopologyConstraint packs the pods of a replica together.
type ServiceTopologyConstraint struct {
	// packDomain is a level of the graph's topology.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	PackDomain string `json:"packDomain"`
}

// TopologyConstraint packs a graph into a domain of a cluster topology.
type TopologyConstraint struct {
	// topologyProfile is the topology.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	TopologyProfile string `json:"topologyProfile"`

	// packDomain is a level of the topology.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	PackDomain string `json:"packDomain,omitempty"`
}

// GraphExperimental holds settings that may change between releases.
type GraphExperimental struct {
	// kvTransferPolicy keeps transfers of KV caches within a domain.
	//
	// +optional
	KVTransferPolicy *KVTransferPolicy `json:"kvTransferPolicy,omitempty"`
}

// KVTransferPolicy keeps transfers of KV caches within a domain.
//
// +kubebuilder:validation:XValidation:rule="has(self.labelKey) != has(self.clusterTopologyName)",message="give either labelKey or clusterTopologyName"
// +kubebuilder:validation:XValidation:rule="has(self.preferredWeight) == (has(self.enforcement) && self.enforcement == 'preferred')",message="a preferredWeight belongs to enforcement preferred",fieldPath=".preferredWeight"
type KVTransferPolicy struct {
	// labelKey is the label of nodes that holds the domain.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LabelKey string `json:"labelKey,omitempty"`

	// clusterTopologyName is the topology that knows the domain.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	ClusterTopologyName string `json:"clusterTopologyName,omitempty"`

	// domain is the level within which caches are transferred.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Domain string `json:"domain"`

	// enforcement is required or preferred.
	//
	// +optional
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;preferred
	Enforcement string `json:"enforcement,omitempty"`

	// preferredWeight is the weight of the preference.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	PreferredWeight *float64 `json:"preferredWeight,omitempty"`
}

// Values of a policy's enforcement.
const (
	EnforcementRequired  = "required"
	EnforcementPreferred = "preferred"
)

// PlacementStatus is how well the pods are placed.
type PlacementStatus struct {
	// score is 1 at best.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Score *float64 `json:"score,omitempty"`

	// state is Reported, Partial, Unsupported or Unknown.
	//
	// +optional
	State string `json:"state,omitempty"`
}
