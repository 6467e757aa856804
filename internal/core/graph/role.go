package graph

// Role is what a component does in a graph.
type Role string

const (
	RoleFrontend Role = "frontend"
	RoleWorker   Role = "worker"
	RolePrefill  Role = "prefill"
	RoleDecode   Role = "decode"
	RolePlanner  Role = "planner"
	RoleEPP      Role = "epp"
	// RoleOther is any component type that we do not know: it gets what every
	// component gets and nothing more.
	RoleOther Role = "default"
)

// RoleOf reads a component type. Types are free text in the API.
func RoleOf(componentType string) Role {
	switch r := Role(componentType); r {
	case RoleFrontend, RoleWorker, RolePrefill, RoleDecode, RolePlanner, RoleEPP:
		return r
	default:
		return RoleOther
	}
}

// RunsEngine reports whether components of the role run an inference engine.
func (r Role) RunsEngine() bool {
	return r == RoleWorker || r == RolePrefill || r == RoleDecode
}
