package conversion

import (
	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

func upGraphStatus(in *v1alpha1.DynamoGraphDeploymentStatus) v1beta1.DynamoGraphDeploymentStatus {
	out := v1beta1.DynamoGraphDeploymentStatus{
		ObservedGeneration: in.ObservedGeneration,
		State:              string(in.State),
		Conditions:         in.Conditions,
		Placement:          (*v1beta1.PlacementStatus)(in.Placement),
	}
	for name, s := range in.Services {
		if out.Components == nil {
			out.Components = make(map[string]v1beta1.ComponentReplicaStatus, len(in.Services))
		}
		out.Components[name] = upReplicas(s)
	}
	for name, s := range in.Checkpoints {
		if out.Checkpoints == nil {
			out.Checkpoints = make(map[string]v1beta1.CheckpointStatus, len(in.Checkpoints))
		}
		out.Checkpoints[name] = v1beta1.CheckpointStatus(s)
	}
	if r := in.Restart; r != nil {
		out.Restart = &v1beta1.RestartStatus{ObservedID: r.ObservedID, Phase: string(r.Phase), InProgress: r.InProgress, Message: r.Message}
	}
	if r := in.RollingUpdate; r != nil {
		out.RollingUpdate = &v1beta1.RollingUpdateStatus{Phase: r.Phase, StartTime: r.StartTime, EndTime: r.EndTime, UpdatedComponents: r.UpdatedServices}
	}
	out.Rollout = upRollout(in.Rollout)
	return out
}

func downGraphStatus(in *v1beta1.DynamoGraphDeploymentStatus) v1alpha1.DynamoGraphDeploymentStatus {
	out := v1alpha1.DynamoGraphDeploymentStatus{
		ObservedGeneration: in.ObservedGeneration,
		State:              v1alpha1.GraphState(in.State),
		Conditions:         in.Conditions,
		Placement:          (*v1alpha1.PlacementStatus)(in.Placement),
	}
	for name, s := range in.Components {
		if out.Services == nil {
			out.Services = make(map[string]v1alpha1.ServiceReplicaStatus, len(in.Components))
		}
		out.Services[name] = downReplicas(s)
	}
	for name, s := range in.Checkpoints {
		if out.Checkpoints == nil {
			out.Checkpoints = make(map[string]v1alpha1.CheckpointStatus, len(in.Checkpoints))
		}
		out.Checkpoints[name] = v1alpha1.CheckpointStatus(s)
	}
	if r := in.Restart; r != nil {
		out.Restart = &v1alpha1.RestartStatus{ObservedID: r.ObservedID, Phase: v1alpha1.RestartPhase(r.Phase), InProgress: r.InProgress, Message: r.Message}
	}
	if r := in.RollingUpdate; r != nil {
		out.RollingUpdate = &v1alpha1.RollingUpdateStatus{Phase: r.Phase, StartTime: r.StartTime, EndTime: r.EndTime, UpdatedServices: r.UpdatedComponents}
	}
	out.Rollout = downRollout(in.Rollout)
	return out
}

// upReplicas: one name is a list of one.
func upReplicas(in v1alpha1.ServiceReplicaStatus) v1beta1.ComponentReplicaStatus {
	out := v1beta1.ComponentReplicaStatus{
		ComponentKind:     string(in.ComponentKind),
		ComponentNames:    in.ComponentNames,
		RuntimeNamespace:  in.RuntimeNamespace,
		Replicas:          in.Replicas,
		UpdatedReplicas:   in.UpdatedReplicas,
		ReadyReplicas:     in.ReadyReplicas,
		AvailableReplicas: in.AvailableReplicas,
		ScheduledReplicas: in.ScheduledReplicas,
		GrantedReplicas:   in.GrantedReplicas,
		LimitedBy:         in.LimitedBy,
		Message:           in.Message,
		Startup:           (*v1beta1.StartupTimes)(in.Startup),
	}
	if len(out.ComponentNames) == 0 && in.ComponentName != "" {
		out.ComponentNames = []string{in.ComponentName}
	}
	return out
}

// downReplicas: the one name is the last of several, as in the original.
func downReplicas(in v1beta1.ComponentReplicaStatus) v1alpha1.ServiceReplicaStatus {
	out := v1alpha1.ServiceReplicaStatus{
		ComponentKind:     v1alpha1.ComponentKind(in.ComponentKind),
		RuntimeNamespace:  in.RuntimeNamespace,
		Replicas:          in.Replicas,
		UpdatedReplicas:   in.UpdatedReplicas,
		ReadyReplicas:     in.ReadyReplicas,
		AvailableReplicas: in.AvailableReplicas,
		ScheduledReplicas: in.ScheduledReplicas,
		GrantedReplicas:   in.GrantedReplicas,
		LimitedBy:         in.LimitedBy,
		Message:           in.Message,
		Startup:           (*v1alpha1.StartupTimes)(in.Startup),
	}
	if n := len(in.ComponentNames); n > 0 {
		out.ComponentName = in.ComponentNames[n-1]
		if n > 1 {
			out.ComponentNames = in.ComponentNames
		}
	}
	return out
}

func upRollout(in *v1alpha1.RolloutStatus) *v1beta1.RolloutStatus {
	if in == nil {
		return nil
	}
	out := &v1beta1.RolloutStatus{
		Revision:     in.Revision,
		Target:       in.Target,
		Stable:       in.Stable,
		Phase:        in.Phase,
		Reason:       in.Reason,
		Message:      in.Message,
		Step:         in.Step,
		StartedAt:    in.StartedAt,
		ProgressedAt: in.ProgressedAt,
		Roles:        each(in.Roles, func(r v1alpha1.RolloutRoleStatus) v1beta1.RolloutRoleStatus { return v1beta1.RolloutRoleStatus(r) }),
		GPUs:         (*v1beta1.RolloutGPUs)(in.GPUs),
		Analysis:     (*v1beta1.RolloutAnalysis)(in.Analysis),
	}
	for _, g := range in.Generations {
		out.Generations = append(out.Generations, v1beta1.RolloutGeneration{
			ID:       g.ID,
			Revision: g.Revision,
			Share:    g.Share,
			Roles:    each(g.Roles, func(r v1alpha1.RolloutReplicas) v1beta1.RolloutReplicas { return v1beta1.RolloutReplicas(r) }),
		})
	}
	return out
}

func downRollout(in *v1beta1.RolloutStatus) *v1alpha1.RolloutStatus {
	if in == nil {
		return nil
	}
	out := &v1alpha1.RolloutStatus{
		Revision:     in.Revision,
		Target:       in.Target,
		Stable:       in.Stable,
		Phase:        in.Phase,
		Reason:       in.Reason,
		Message:      in.Message,
		Step:         in.Step,
		StartedAt:    in.StartedAt,
		ProgressedAt: in.ProgressedAt,
		Roles:        each(in.Roles, func(r v1beta1.RolloutRoleStatus) v1alpha1.RolloutRoleStatus { return v1alpha1.RolloutRoleStatus(r) }),
		GPUs:         (*v1alpha1.RolloutGPUs)(in.GPUs),
		Analysis:     (*v1alpha1.RolloutAnalysis)(in.Analysis),
	}
	for _, g := range in.Generations {
		out.Generations = append(out.Generations, v1alpha1.RolloutGeneration{
			ID:       g.ID,
			Revision: g.Revision,
			Share:    g.Share,
			Roles:    each(g.Roles, func(r v1beta1.RolloutReplicas) v1alpha1.RolloutReplicas { return v1alpha1.RolloutReplicas(r) }),
		})
	}
	return out
}

// each is a map with other values; one that is absent or empty stays absent.
func each[From, To any](in map[string]From, to func(From) To) map[string]To {
	var out map[string]To
	for name, value := range in {
		if out == nil {
			out = make(map[string]To, len(in))
		}
		out[name] = to(value)
	}
	return out
}
