package guard

const (
	// Outlines keeps what tenants write into Secrets, ConfigMaps and other objects
	// that are not ours out of the operator's memory.
	Outlines Guard = "outlines"
	// OwnKeys keeps the keys of others in etcd when a graph is deleted.
	OwnKeys Guard = "own-keys"
)
