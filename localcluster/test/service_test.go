package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// newNamespace returns one that is deleted when the test ends.
func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// The image of a pod that idles: nothing of the host is run for it.
const idleImage = "registry.invalid/idle:1"

func idlePod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers:                    []corev1.Container{{Name: "main", Image: idleImage}},
		},
	}
}

// playPod makes an idle pod with a Service in front, both called engine, and returns a listener where its process
// would listen: what is served there is served by the pod.
func playPod(t *testing.T, client kubernetes.Interface, ns string, port, target int32) (*corev1.Service, *corev1.Pod, net.Listener) {
	t.Helper()
	service, err := client.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "engine"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "engine"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: port, TargetPort: intstr.FromInt32(target)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := idlePod("engine", service.Spec.Selector)
	eventually(t, func(ctx context.Context) error { // the namespace's ServiceAccount may be late
		_, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an answer that got lost
			return nil
		}
		return err
	})
	eventually(t, func(ctx context.Context) error {
		if pod, err = client.CoreV1().Pods(ns).Get(ctx, pod.Name, metav1.GetOptions{}); err == nil && pod.Status.PodIP == "" {
			err = errors.New("the pod has no address")
		}
		return err
	})
	listener, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", strings.Replace(pod.Status.PodIP, "10.", "127.", 1), target))
	if err != nil {
		t.Fatal(err)
	}
	return service, pod, listener
}

func TestAServiceIsReachedThroughEveryProxy(t *testing.T) {
	c := sharedCluster(t)
	client, s := c.client(t), c.state(t)
	ns := newNamespace(t, client)
	service, pod, listener := playPod(t, client, ns, 80, 8000)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "engine saw %s", r.URL.Path)
	})}
	go server.Serve(listener)
	defer server.Close()

	for name, request := range map[string]rest.ResponseWrapper{
		"services/proxy": client.CoreV1().Services(ns).ProxyGet("http", "engine", "80", "/v1/models", nil),
		"pods/proxy":     client.CoreV1().Pods(ns).ProxyGet("http", "engine", "8000", "/v1/models", nil),
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, func(ctx context.Context) error {
				body, err := request.DoRaw(ctx)
				return expect(string(body), "engine saw /v1/models", err)
			})
		})
	}
	proxy, err := url.Parse(s.ProxyURL)
	if err != nil {
		t.Fatal(err)
	}
	forward := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for name, address := range map[string]string{
		"forward proxy by name":          "engine." + ns + ".svc.cluster.local",
		"forward proxy by cluster IP":    service.Spec.ClusterIP,
		"forward proxy by pod's address": pod.Status.PodIP + ":8000",
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, func(ctx context.Context) error {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/models", http.NoBody)
				if err != nil {
					return err
				}
				response, err := forward.Do(request)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				return expect(string(body), "engine saw /v1/models", err)
			})
		})
	}
}

func expect(got, want string, err error) error {
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

func TestClaimsOfTheDefaultClassGetAFolder(t *testing.T) {
	c := sharedCluster(t)
	client := c.client(t)
	ns := newNamespace(t, client)
	claims := client.CoreV1().PersistentVolumeClaims(ns)
	for name, class := range map[string]*string{"cache": nil, "foreign": new("ceph")} {
		if _, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: class,
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
				},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var folder string
	eventually(t, func(ctx context.Context) error {
		claim, err := claims.Get(ctx, "cache", metav1.GetOptions{})
		if err != nil {
			return err
		}
		folder = filepath.Join(c.dir, "volumes", claim.Spec.VolumeName)
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim is %s", claim.Status.Phase)
		}
		return nil
	})
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		t.Errorf("folder of the volume: %v, %v", info, err)
	}
	if claim, err := claims.Get(t.Context(), "foreign", metav1.GetOptions{}); err != nil || claim.Status.Phase != corev1.ClaimPending {
		t.Errorf("claim of an unknown class: %v, %v", claim.Status.Phase, err)
	}
	if err := claims.Delete(t.Context(), "cache", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			return errors.New("folder is still there")
		}
		_, err := client.CoreV1().PersistentVolumes().Get(ctx, filepath.Base(folder), metav1.GetOptions{})
		if err == nil {
			return errors.New("volume is still there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func TestTokensOfServiceAccountsHaveTheirRightsAndNoMore(t *testing.T) {
	c := sharedCluster(t)
	admin := c.client(t)
	ns := newNamespace(t, admin)
	var token *authenticationv1.TokenRequest
	eventually(t, func(ctx context.Context) (err error) {
		token, err = admin.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	})
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var self *authenticationv1.SelfSubjectReview
	eventually(t, func(ctx context.Context) (err error) {
		self, err = client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	})
	if got, want := self.Status.UserInfo.Username, "system:serviceaccount:"+ns+":default"; got != want {
		t.Errorf("the token is %q's, want %q", got, want)
	}
	if _, err := client.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets without a role: %v, want forbidden", err)
	}
}

func TestEverySchedulerNameIsServed(t *testing.T) {
	client := sharedCluster(t).client(t)
	ns := newNamespace(t, client)
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	for _, scheduler := range []string{"default-scheduler", "volcano", "kai-scheduler"} {
		t.Run(scheduler, func(t *testing.T) {
			pod := idlePod(scheduler, nil)
			pod.Spec.SchedulerName = scheduler
			if _, err := client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, func(ctx context.Context) error {
				pod, err := client.CoreV1().Pods(ns).Get(ctx, scheduler, metav1.GetOptions{})
				if err == nil && pod.Spec.NodeName == "" {
					err = errors.New("pod is not placed")
				}
				return err
			})
		})
	}
}

func TestTheAuditLogHoldsNoReadsOfPeople(t *testing.T) {
	c := sharedCluster(t)
	client := c.client(t)
	ns := newNamespace(t, client)
	if _, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	// The log is written behind the answers. A write that came after the read is
	// in it when the read would be.
	after := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after-the-read-in-" + ns}}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), after, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var log []byte
	eventually(t, func(context.Context) (err error) {
		log, err = os.ReadFile(filepath.Join(c.dir, "logs", "audit.log"))
		if err == nil && !strings.Contains(string(log), `"name":"`+after.Name+`"`) {
			err = fmt.Errorf("the log of %d bytes lacks what was made", len(log))
		}
		return err
	})
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, ns) && strings.Contains(line, `"verb":"list"`) &&
			strings.Contains(line, `"resource":"configmaps"`) && !strings.Contains(line, "system:serviceaccount:") {
			t.Errorf("a read of ours is in the log: %s", line)
		}
	}
}
