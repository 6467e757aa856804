// Command dynamo-mocker plays a container of the Dynamo runtime. Its arguments
// are the container's command and args, word for word.
//
//	dynamo-mocker python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B
//
// Started under the name of a program that it plays, by the links of its image, it
// plays that program: a container's command needs no change.
//
//	python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
)

func main() {
	if words := launch.Words(os.Args); len(words) == 1 && words[0] == "--version" {
		fmt.Println("dynamo-mocker version", version.String())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := mocker.Main(ctx, launch.Words(os.Args))
	stop()
	os.Exit(code)
}
