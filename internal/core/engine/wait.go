package engine

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Names of the volume and the file with the script by which a worker waits for its
// leader.
const (
	waitVolume = "wait-leader-script"
	WaitFile   = "wait-for-leader.py"
)

// WaitScript holds a worker back until something listens at its leader's port. The
// leader's name comes into being with its pod, and it listens once its engine has
// come as far as to look for the others.
const WaitScript = `import os, socket, sys, time

address = (os.environ["LEADER_HOST"], int(os.environ["LEADER_PORT"]))
last = None
while True:
    try:
        socket.create_connection(address, timeout=5).close()
        break
    except OSError as error:
        if str(error) != last:
            last = str(error)
            print("waiting for the leader at %s:%d: %s" % (*address, last), file=sys.stderr, flush=True)
        time.sleep(2)
`

// waitForLeader adds the container that waits.
func waitForLeader(s Spec, l *Container) {
	l.InitContainers = append(l.InitContainers, corev1.Container{
		Name: "wait-for-leader-mp", Image: s.Image,
		Command:      []string{"sh", "-c", `export LEADER_HOST="` + shellVariables(s.Group.Addresses.LeaderExec) + `" LEADER_PORT="` + mpPort + `" && exec python3 /scripts/` + WaitFile},
		VolumeMounts: []corev1.VolumeMount{{Name: waitVolume, MountPath: "/scripts", ReadOnly: true}},
	})
	l.InitVolumes = append(l.InitVolumes, corev1.Volume{Name: waitVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.WaitScript}},
	}})
}

// shellVariables spells the kubelet's $(NAME) as the shell's ${NAME}: the variables
// of an orchestrator are not known to the kubelet in every container.
func shellVariables(text string) string {
	return strings.NewReplacer("$(", "${", ")", "}").Replace(text)
}
