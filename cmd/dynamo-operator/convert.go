package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/operator"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// convert is a converter and nothing else: it has no account in the cluster.
func convert(args []string) error {
	c := config.Default()
	o := operator.ConverterOptions{Drain: c.Webhook.Drain.Duration}
	set := flag.NewFlagSet("dynamo-operator convert", flag.ContinueOnError)
	set.StringVar(&o.Address, "address", c.Webhook.Address, "`address` of the server")
	set.StringVar(&o.HealthAddress, "health-probe-bind-address", c.Server.HealthAddress, "`address` of the health server")
	set.StringVar(&o.CertificateFolder, "certificate-folder", "", "`folder` with tls.crt and tls.key, which are read again when they change")
	if err := parse(set, args); err != nil {
		return err
	}
	logTo(c.Log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return operator.Convert(ctx, o)
}

// publish leads the definitions to a converter, keeps its certificate, and has
// v1beta1 served. It is a Job of the operator's image.
func publish(args []string) error {
	c := config.Default()
	o := operator.PublishOptions{Namespace: config.OwnNamespace(), Life: c.Certificate, Timeout: 4 * time.Minute}
	set := flag.NewFlagSet("dynamo-operator conversion publish", flag.ContinueOnError)
	set.StringVar(&o.Service, "service", "dynamo-operator-converter", "`Service` of the converter, in the namespace of this pod")
	set.StringVar(&o.Secret, "secret", "dynamo-operator-converter-cert", "`Secret` with its certificate")
	set.BoolVar(&o.External, "external", false, "the Secret is kept by somebody else")
	set.StringVar(&o.InjectFrom, "cert-manager-certificate", "", "Certificate of cert-manager, `namespace/name`, whose authority it writes into the definitions from then on")
	set.StringVar(&o.Life.ClusterDomain, "cluster-domain", c.Certificate.ClusterDomain, "`domain` of the cluster's names")
	set.DurationVar(&o.Timeout, "timeout", o.Timeout, "how `long` to wait for all of it")
	if err := parse(set, args); err != nil {
		return err
	}
	logTo(c.Log)
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	return operator.PublishConverter(context.Background(), o, cluster)
}

// withdraw freezes v1beta1, before its converter goes.
func withdraw() error {
	return install(2*time.Minute, func(ctx context.Context, i installation.Installer) error { return i.WithdrawBeta(ctx, os.Stdout) })
}

func parse(set *flag.FlagSet, args []string) error {
	set.SetOutput(os.Stderr)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%s: %q is no flag", set.Name(), set.Arg(0))
	}
	return nil
}
