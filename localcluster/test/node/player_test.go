package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// play is what the test binary does when the node agent runs it as a runtime:
// the container's args are a verb and its operands.
func play(args []string) {
	fmt.Println("playing", args)
	switch args[0] {
	case "serve":
		serve()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ignoring SIGTERM")
		time.Sleep(time.Hour)
	case "environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
		serve()
	case "sleep":
		d, err := time.ParseDuration(args[1])
		check(err)
		time.Sleep(d)
	case "exit":
		code, err := strconv.Atoi(args[1])
		check(err)
		fmt.Fprintln(os.Stderr, "giving up")
		os.Exit(code)
	case "write":
		check(os.WriteFile(args[1], []byte(args[2]), 0o644))
	case "print":
		data, err := os.ReadFile(args[1])
		check(err)
		fmt.Println(string(data))
	case "whoami":
		whoami()
	default:
		check(fmt.Errorf("unknown verb %q", args[0]))
	}
}

// serve answers probes on port 8000 until it is asked to end. /break makes it
// unwell, /file?path= shows a file.
func serve() {
	var broken atomic.Bool
	http.HandleFunc("/live", func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/break", func(http.ResponseWriter, *http.Request) { broken.Store(true) })
	http.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("greeted")
		fmt.Fprintf(w, "hello from %s", os.Getenv("HOSTNAME"))
	})
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, os.Getenv(r.URL.Query().Get("env")))
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	srv := &http.Server{Addr: net.JoinHostPort(os.Getenv("DYNAMO_LISTEN_HOST"), "8000")}
	go func() {
		<-ctx.Done()
		fmt.Println("asked to end")
		_ = srv.Close()
	}()
	fmt.Println("listening on", srv.Addr)
	if err := srv.ListenAndServe(); err != http.ErrServerClosed {
		check(err)
	}
}

// whoami asks the API server who we are.
func whoami() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	check(err)
	fmt.Println("I am", review.Status.UserInfo.Username)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fail:", err)
		os.Exit(97)
	}
}
