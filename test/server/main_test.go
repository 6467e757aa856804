// Package server runs the operator as it is shipped, with the rights that it is
// shipped with, beside an API server that nothing else works on: no controller,
// no garbage collector, no node. Tests play their parts, and so can bring about
// what takes those ten minutes, or what they make right too soon to be seen.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// cluster is the API server that all tests share, each in a namespace of its
// own. kubeconfig is the operator's, which binDir holds with the other programs.
var (
	cluster            *localenv.Cluster
	kubeconfig, binDir string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if binDir = os.Getenv("PLAYGROUND_BIN"); binDir == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run an API server from, its tests are skipped (make test sets it)")
		return 0
	}
	folder, err := os.MkdirTemp("", "server-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	stop, err := start(folder)
	defer stop()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

// start runs an API server that knows our kinds and the operator's account.
func start(folder string) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		return func() {}, err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{
		BinDir: binDir, Dir: filepath.Join(folder, "cluster"), Nodes: 1, ServerOnly: true, Log: log, Args: []string{"--audit-log"},
	})
	if err != nil {
		return func() {}, err
	}
	stop = func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	return stop, errors.Join(installOptionalAPIs(ctx), cluster.InstallAPI(ctx), installRights(ctx), signIn(ctx, folder))
}

// installOptionalAPIs installs the APIs by which a component can span nodes and be
// reached.
func installOptionalAPIs(ctx context.Context) error {
	for _, definition := range []string{
		"volcano/volcano-podgroup.yaml", "lws/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
		"istio/customresourcedefinitions.gen.yaml", "inference/inference.networking.k8s.io_inferencepools.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(binDir, "addons", definition))
		if err != nil {
			return err
		}
		objects, err := cluster.Decode(bytes.NewReader(text), "")
		if err != nil {
			return fmt.Errorf("read %s: %w", definition, err)
		}
		if err := cluster.Apply(ctx, objects); err != nil {
			return err
		}
	}
	return nil
}

// installRights installs what is shipped but for the operator itself, which
// tests start when they need it.
func installRights(ctx context.Context) error {
	objects, err := installation.Operator()
	if err != nil {
		return err
	}
	for i, object := range objects {
		if object.GetKind() == "Deployment" {
			return errors.Join(cluster.Apply(ctx, append(objects[:i:i], objects[i+1:]...)), allowElections(ctx))
		}
	}
	return errors.New("no Deployment is shipped")
}

// allowElections lets the operator elect a leader by any Lease of its namespace: the
// shipped role names that of one release, and each test has its own.
func allowElections(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: localenv.OperatorKey.Namespace, Name: "elections-of-tests"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: localenv.OperatorKey.Name}},
	}
	return errors.Join(cluster.Client.Create(ctx, role), cluster.Client.Create(ctx, binding))
}

// signIn writes the kubeconfig of the operator's account.
func signIn(ctx context.Context, folder string) error {
	token, err := tokenOf(ctx, localenv.OperatorKey.Namespace, localenv.OperatorKey.Name)
	if err != nil {
		return err
	}
	known, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		return err
	}
	for name := range known.AuthInfos {
		known.AuthInfos[name] = &api.AuthInfo{Token: token}
	}
	kubeconfig = filepath.Join(folder, "operator.kubeconfig")
	return clientcmd.WriteToFile(*known, kubeconfig)
}

// tokenOf is what an account shows to the API server.
func tokenOf(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 3600))}}
	if err := cluster.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of %s: %w", name, err)
	}
	return request.Status.Token, nil
}
